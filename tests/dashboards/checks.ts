/** Counts what holds and what does not, one line each. */
export class Checks {
  passed = 0
  failed = 0

  /** `problem`: what is wrong; undefined: it holds. */
  check(name: string, problem: string | undefined): void {
    if (problem === undefined) {
      this.passed += 1
      console.log(`ok ${name}`)
    } else {
      this.failed += 1
      console.log(`FAILED ${name}: ${problem}`)
    }
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

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

/**
 * Runs a program of checks in a folder of its own, and prints `N passed, N failed`. The process ends with 0
 * only if something was checked and all of it holds.
 * @param name of the folder
 */
export async function runChecks(
  name: string,
  run: (folder: string, checks: Checks) => Promise<void>,
): Promise<void> {
  const checks = new Checks()
  const folder = await mkdtemp(join(tmpdir(), `torchserve-ts-${name}-`))
  try {
    await run(folder, checks)
  } catch (error) {
    checks.check('the run', error instanceof Error ? (error.stack ?? error.message) : String(error))
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 })
  }
  console.log(`${checks.passed} passed, ${checks.failed} failed`)
  process.exitCode = checks.failed === 0 && checks.passed > 0 ? 0 : 1
}

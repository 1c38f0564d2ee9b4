import type { Output } from './output.ts'

/** The result of `--check-archive`. */
export class ArchiveReport {
  /** What a server would start. */
  readonly runs: string[] = []
  /** Differences from TorchServe. */
  readonly differs: string[] = []
  /** Requirements that this machine lacks. */
  readonly missing: string[] = []
  /** Errors that prevent its use on any machine. */
  readonly broken: string[] = []

  /** 0: runs here; 1: something is missing here; 2: cannot be used. */
  get status(): 0 | 1 | 2 {
    if (this.broken.length > 0) return 2
    return this.missing.length > 0 ? 1 : 0
  }

  print(output: Output): void {
    section(output, 'Runs', this.runs)
    section(output, 'Differs from TorchServe', this.differs)
    section(output, 'Missing here', this.missing)
    section(output, 'Cannot be used', this.broken)
    const verdict = [
      'The archive runs here.',
      'The archive does not run here yet.',
      'The archive cannot be used.',
    ]
    output.out(verdict[this.status]!)
  }
}

function section(output: Output, title: string, lines: readonly string[]): void {
  if (lines.length === 0) return
  output.out(`${title}:`)
  for (const line of lines) output.out(`  - ${line}`)
}

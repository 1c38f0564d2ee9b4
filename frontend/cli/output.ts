/** Where the command line writes: whole lines, without their line end. */
export interface Output {
  out(line: string): void
  err(line: string): void
}

export const TERMINAL: Output = {
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
}

/** Output of the command line: whole lines, without line ends. */
export interface Output {
  out(line: string): void
  err(line: string): void
}

export const TERMINAL: Output = {
  out: (line) => process.stdout.write(`${line}\n`),
  err: (line) => process.stderr.write(`${line}\n`),
}

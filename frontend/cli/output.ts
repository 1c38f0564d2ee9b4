import { escapeLines } from '../../common/texts.ts'

/** Output of the command line: whole lines, without line ends. */
export interface Output {
  out(line: string): void
  err(line: string): void
  /** Whether the reader of `out` has taken every line so far; absent: it takes all. */
  taken?(): Promise<boolean>
}

/** What is printed of a line: names and messages of archives, hosts and handlers command no terminal. */
export function printed(line: string): string {
  return `${escapeLines(line)}\n`
}

/**
 * stdout and stderr of a command. A reader that has closed its end (`| head -1`) gets nothing more, and the
 * command goes on to its end and its own status.
 */
export class Terminal implements Output {
  readonly #out = new Sink(process.stdout)
  readonly #err = new Sink(process.stderr)

  out(line: string): void {
    this.#out.write(line)
  }

  err(line: string): void {
    this.#err.write(line)
  }

  taken(): Promise<boolean> {
    return this.#out.taken()
  }

  /**
   * Resolves when the readers have taken everything, however slow they are.
   * @returns whether stdout has it all, or a reader that wanted no more
   */
  async written(): Promise<boolean> {
    await this.#out.written()
    const { failure } = this.#out
    if (failure !== undefined) this.err(`torchserve-ts: stdout cannot be written: ${failure.message}`)
    await this.#err.written()
    return failure === undefined
  }
}

class Sink {
  /** Why it cannot be written; not for a reader that has gone. */
  failure: Error | undefined
  readonly #stream: NodeJS.WriteStream
  #isOver = false

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
    stream.on('error', this.#failed)
  }

  /** False: it failed, or its reader has gone. */
  async taken(): Promise<boolean> {
    // A failure is told after the write, and before the next one calls back.
    if (!this.#isOver) await new Promise((resolve) => this.#stream.write('', resolve))
    return !this.#isOver
  }

  write(line: string): void {
    if (this.#isOver) return
    try {
      this.#stream.write(printed(line))
    } catch (error) {
      // Node writes files at once, and throws.
      this.#failed(error as NodeJS.ErrnoException)
    }
  }

  async written(): Promise<void> {
    if (this.#isOver || this.#stream.writableLength === 0) return
    await new Promise((resolve) => this.#stream.write('', resolve))
  }

  readonly #failed = (error: NodeJS.ErrnoException): void => {
    this.#isOver = true
    if (error.code !== 'EPIPE') this.failure ??= error
  }
}

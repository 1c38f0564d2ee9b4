import type { Server } from '../support/server-process.ts'
import type { Check } from './vitals.ts'

/** What only a defect of the server writes. */
const DEFECT =
  /\b(TypeError|RangeError|ReferenceError|AssertionError|SyntaxError|MaxListenersExceededWarning)\b|[Uu]n(handled|caught)|\bERR_[A-Z]+_|heap out of memory/
const EVERY_MS = 1_000
/** Lines that are kept for who waits for one. */
const KEPT = 200

/** Reads the log as it comes, and keeps the server's copy of it short. */
export class LogWatch {
  readonly #server: Server
  readonly #timer: NodeJS.Timeout
  readonly #defects: string[] = []
  #lines = 0
  #looked = 0

  constructor(server: Server) {
    this.#server = server
    this.#timer = setInterval(() => this.look(), EVERY_MS)
  }

  look(): void {
    const { output } = this.#server
    const lines = output.slice(this.#looked)
    this.#lines += lines.length
    this.#defects.push(...lines.filter((line) => DEFECT.test(line)))
    output.splice(0, Math.max(0, output.length - KEPT))
    this.#looked = output.length
  }

  checks(): Check[] {
    const detail = `${this.#defects.length} of ${this.#lines} lines${this.#defects
      .slice(0, 10)
      .map((line) => `\n      ${line}`)
      .join('')}`
    return [{ name: 'no defect in the log', isPassed: this.#defects.length === 0 && this.#lines > 0, detail }]
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}

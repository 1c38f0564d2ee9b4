import type { Output } from './output.ts'
import { startTimer } from '../../common/timer.ts'

/** Another screen without a cursor, and back; begin of the screen; rest of the line, and of the screen. */
const ENTER = '\u001b[?1049h\u001b[?25l'
const LEAVE = '\u001b[?25h\u001b[?1049l'
const HOME = '\u001b[H'
const REST_OF_LINE = '\u001b[K'
const REST = '\u001b[J'
const CTRL_C = '\u0003'

/**
 * Shows pages of text one over the other in a terminal, or one after the other elsewhere, until q, Ctrl-C, or
 * a signal. Close it, or the terminal stays as it is.
 */
export class TopScreen {
  isOver = false
  readonly #output: Output
  readonly #isTerminal = process.stdout.isTTY
  #wake: () => void = () => undefined

  constructor(output: Output) {
    this.#output = output
    process.on('SIGINT', this.#end)
    process.on('SIGTERM', this.#end)
    if (process.stdin.isTTY) process.stdin.setRawMode(true)
    process.stdin.on('data', this.#typed).on('error', () => undefined)
    if (this.#isTerminal) process.stdout.write(ENTER)
  }

  /** Lines of a page; undefined: as many as it has, because there is no terminal. */
  get height(): number | undefined {
    return this.#isTerminal ? Math.max(1, (process.stdout.rows || 24) - 1) : undefined
  }

  async show(lines: readonly string[]): Promise<void> {
    if (this.isOver) return
    if (this.#isTerminal) {
      const columns = process.stdout.columns || 80
      const seen = lines.slice(0, this.height).map((line) => line.slice(0, columns) + REST_OF_LINE)
      process.stdout.write(`${HOME}${seen.join('\r\n')}${REST}`)
    } else for (const line of lines) this.#output.out(line)
    // Whoever reads it may have gone.
    if ((await this.#output.taken?.()) === false) this.isOver = true
  }

  /** Resolves after the time, or when it is over. */
  async pause(milliseconds: number): Promise<void> {
    if (this.isOver) return
    await new Promise<void>((resolve) => {
      const timer = startTimer(resolve, milliseconds)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  close(): void {
    process.off('SIGINT', this.#end)
    process.off('SIGTERM', this.#end)
    process.stdin.off('data', this.#typed).pause()
    if (process.stdin.isTTY) process.stdin.setRawMode(false)
    if (this.#isTerminal) process.stdout.write(LEAVE)
  }

  readonly #end = (): void => {
    this.isOver = true
    this.#wake()
  }

  readonly #typed = (keys: Buffer): void => {
    const text = keys.toString('latin1')
    if (text.includes('q') || text.includes(CTRL_C)) this.#end()
  }
}

import type { Output } from './output.ts'

const REDRAW_MS = 200
/** Without a terminal: a line for each tenth. */
const STEPS = 10

/** Shows how far a download is: one line that changes on a terminal, a line for each tenth elsewhere. */
export class DownloadProgress {
  readonly #name: string
  readonly #output: Output
  readonly #terminal: NodeJS.WriteStream | undefined
  #began: number | undefined
  #drawn = 0
  #step = 0
  #line = ''

  constructor(name: string, output: Output, stream: NodeJS.WriteStream = process.stderr) {
    this.#name = name
    this.#output = output
    this.#terminal = stream.isTTY ? stream : undefined
  }

  readonly show = (bytes: number, size: number | undefined): void => {
    const now = performance.now()
    if (this.#began === undefined) {
      this.#began = now
      const whole = size === undefined ? '' : ` (${sizeText(size)})`
      this.#output.err(`Downloading ${this.#name}${whole}`)
    }
    if (this.#terminal !== undefined) {
      if (now - this.#drawn < REDRAW_MS && bytes !== size) return
      this.#drawn = now
      this.#line = lineOf(bytes, size, this.#rate(bytes, now))
      this.#terminal.write(`\r\u001b[K${this.#line}`)
    } else if (stepOf(bytes, size) > this.#step) {
      this.#step = stepOf(bytes, size)
      this.#output.err(lineOf(bytes, size, this.#rate(bytes, now)))
    }
  }

  /** Ends the line on the terminal. */
  end(): void {
    if (this.#line !== '') this.#terminal?.write('\n')
  }

  #rate(bytes: number, now: number): number {
    return bytes / Math.max(0.001, (now - this.#began!) / 1000)
  }
}

function stepOf(bytes: number, size: number | undefined): number {
  return size === undefined || size === 0 ? 0 : Math.floor((bytes / size) * STEPS)
}

function lineOf(bytes: number, size: number | undefined, rate: number): string {
  if (size === undefined) return `${sizeText(bytes)}, ${sizeText(rate)}/s`
  const left = rate > 0 ? `, ${timeText((size - bytes) / rate)} left` : ''
  const percent = Math.floor((bytes / Math.max(1, size)) * 100)
  return `${percent} % of ${sizeText(size)}, ${sizeText(rate)}/s${bytes === size ? '' : left}`
}

/** Bytes as people read them. */
export function sizeText(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  const power = bytes < 1000 ? 0 : Math.min(4, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

function timeText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`
  return `${(seconds / 3600).toFixed(1)} h`
}

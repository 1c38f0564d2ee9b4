/** Arrival times of the parts of one streamed answer, from the moment the request was sent. */
export class Timing {
  parts = 0
  firstMs = 0
  totalMs = 0
  readonly #start = performance.now()

  part(): void {
    if (this.parts === 0) this.firstMs = performance.now() - this.#start
    this.parts += 1
  }

  end(): void {
    this.totalMs = performance.now() - this.#start
  }

  /** For example `chunked HTTP: 240 chunks, first after 9 ms, 301 ms in all`. */
  line(protocol: string, unit: string): string {
    return `${protocol}: ${this.parts} ${unit}, first after ${ms(this.firstMs)} ms, ${ms(this.totalMs)} ms in all`
  }
}

function ms(value: number): string {
  return value < 10 ? value.toFixed(1) : value.toFixed(0)
}

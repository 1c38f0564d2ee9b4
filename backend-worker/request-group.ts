import type { Outlet } from './outlet.ts'
import type { ResponseStream } from './response-stream.ts'

/** The requests of one call of the handler: a batch, or a step of continuous batching. */
export abstract class RequestGroup {
  abstract readonly streams: readonly ResponseStream[]
  readonly outlet: Outlet
  readonly rank: number
  #requestIds: readonly string[] | undefined
  #controller: AbortController | undefined

  constructor({ outlet, rank }: { readonly outlet: Outlet; readonly rank: number }) {
    this.outlet = outlet
    this.rank = rank
  }

  get requestIds(): readonly string[] {
    return (this.#requestIds ??= this.streams.map(({ requestId }) => requestId))
  }

  /** Whether all requests are cancelled. */
  get gone(): boolean {
    return this.streams.length > 0 && this.streams.every(({ gone }) => gone !== undefined)
  }

  /** Aborts when all requests are cancelled. */
  get signal(): AbortSignal {
    if (this.streams.length === 1) return this.streams[0]!.signal
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.gone) this.#controller.abort(this.streams[0]?.gone)
    }
    return this.#controller.signal
  }

  /** One of the requests was cancelled or has failed. */
  streamGone(): void {
    if (this.gone) this.#controller?.abort(this.streams[0]?.gone)
  }

  /** Steps only: whether a request takes part in the next step. */
  setNext?(index: number, next: boolean): void
}

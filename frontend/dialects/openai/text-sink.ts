import { ServeError } from '../../../common/errors.ts'
import { StopFilter } from '../../../common/openai/stop-filter.ts'
import type { FinishReason } from '../../../common/openai/types.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'

/** The object that joins the texts of all choices. */
export interface TextSinkOwner {
  /**
   * A piece of a choice, with the finish reason if it has ended. Returns false if the client's connection is
   * full.
   */
  text(index: number, text: string, finish: FinishReason | null): boolean
  /** A choice is complete. */
  finished(): void
  failed(error: ServeError): void
}

/**
 * The response of a handler to one choice, as text: decodes UTF-8 across items and cuts at the first stop
 * text.
 */
export class TextSink implements ReplySink {
  /** Cancelled when a stop text was found. */
  job: Job | undefined
  readonly #owner: TextSinkOwner
  readonly #index: number
  readonly #filter: StopFilter
  readonly #decoder = new TextDecoder()
  #done = false

  constructor(owner: TextSinkOwner, index: number, stops: readonly string[]) {
    this.#owner = owner
    this.#index = index
    this.#filter = new StopFilter(stops)
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    if (head.status >= 400) {
      this.fail(refusal(head, body))
      return
    }
    this.#push(body)
    this.close()
  }

  open(): void {
    // The first item follows.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#push(chunk.subarray(from, to))
  }

  close(): void {
    if (this.#done) return
    const rest = this.#filter.push(this.#decoder.decode()) + this.#filter.flush()
    this.#finish(rest)
  }

  fail(error: ServeError): void {
    if (this.#done) return
    this.#done = true
    this.#owner.failed(error)
  }

  #push(bytes: Uint8Array): boolean {
    if (this.#done) return true
    const text = this.#filter.push(this.#decoder.decode(bytes, { stream: true }))
    if (this.#filter.stopped) {
      this.#finish(text)
      this.job?.cancel('failed')
      return true
    }
    return text === '' || this.#owner.text(this.#index, text, null)
  }

  #finish(text: string): void {
    // Last: what throws here fails the request.
    this.#owner.text(this.#index, text, 'stop')
    this.#owner.finished()
    this.#done = true
  }
}

/** A handler that sets an error status explains it in its body. */
function refusal({ status }: ReplyHead, body: Uint8Array): ServeError {
  const message = Buffer.from(body).toString().slice(0, 4_096)
  return new ServeError('HANDLER_REJECTED', message || 'The handler refused the request', { status })
}

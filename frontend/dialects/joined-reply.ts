import { ServeError } from '../../common/errors.ts'
import { ByteCollector } from '../../common/byte-flow.ts'
import type { Job } from '../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../jobs/reply-sink.ts'

/** The client's side of a unary request. */
export interface WholeTarget {
  /** @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED: the request fails with it */
  answer(head: ReplyHead, body: Uint8Array): void
  fail(error: ServeError): void
}

/** Answers a unary request once. The items of a streaming handler are joined, up to `maxBytes` bytes. */
export class JoinedReply implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #target: WholeTarget
  readonly #maxBytes: number
  readonly #tooLarge: (limit: string) => string
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  /** @param tooLarge the message for items that together exceed the limit */
  constructor(target: WholeTarget, maxBytes: number, tooLarge: (limit: string) => string) {
    this.#target = target
    this.#maxBytes = maxBytes
    this.#tooLarge = tooLarge
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      this.#target.answer(head, body)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  open(head: ReplyHead): void {
    this.#head = head
    this.#items = new ByteCollector(this.#maxBytes)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (!this.#items!.add(chunk.subarray(from, to))) {
      const message = this.#tooLarge(`max_response_size (${this.#maxBytes} bytes)`)
      this.job?.abort(new ServeError('RESPONSE_TOO_LARGE', message), 'failed')
    }
    return true
  }

  close(): void {
    this.whole(this.#head!, this.#items!.bytes())
  }

  fail(error: ServeError): void {
    this.#target.fail(error)
  }
}

import { ServeError } from '../../common/errors.ts'
import { ByteCollector } from '../../common/byte-flow.ts'
import type { ReplyHead, ReplySink } from '../jobs/reply-sink.ts'

/** The client's side of a unary request. What `answer` throws fails the job. */
export interface UnaryTarget<Written> {
  /** @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED */
  answer(head: ReplyHead, answer: Written): void
  fail(error: ServeError): void
}

/** Answers a unary request once. The items of a streaming handler are joined, up to `maxBytes` bytes. */
export class JoinedReply implements ReplySink {
  readonly #target: UnaryTarget<Uint8Array>
  readonly #maxBytes: number
  readonly #tooLarge: (limit: string) => string
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  /** @param tooLarge the message for items that together exceed the limit */
  constructor(target: UnaryTarget<Uint8Array>, maxBytes: number, tooLarge: (limit: string) => string) {
    this.#target = target
    this.#maxBytes = maxBytes
    this.#tooLarge = tooLarge
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    this.#target.answer(head, body)
  }

  open(head: ReplyHead): void {
    this.#head = head
    this.#items = new ByteCollector(this.#maxBytes)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (this.#items!.add(chunk.subarray(from, to))) return true
    const message = this.#tooLarge(`max_response_size (${this.#maxBytes} bytes)`)
    throw new ServeError('RESPONSE_TOO_LARGE', message)
  }

  close(): void {
    this.whole(this.#head!, this.#items!.bytes())
  }

  fail(error: ServeError): void {
    this.#target.fail(error)
  }
}

import type { ServeError } from '../../../common/errors.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { JoinedReply, type UnaryTarget } from '../joined-reply.ts'
import { type Answer, type AnswerReader, isNative, rejected } from './answers.ts'

/** The client's side of a streamed request. */
export interface StreamTarget<Written = Answer> {
  /** Returns false if the client's connection is full. */
  item(head: ReplyHead, answer: Written): boolean
  /** Ends the stream; its last response was sent before. `head` is present even if there was none. */
  end(head: ReplyHead): void
  fail(error: ServeError): void
}

/** Sends the unary response. The items of a text stream are joined. */
export function unaryReply<Written>(
  reader: AnswerReader<Written>,
  target: UnaryTarget<Written>,
  maxBytes: number,
): JoinedReply {
  return new JoinedReply(
    {
      answer: (head, body) => target.answer(head, wholeAnswer(head, body, reader)),
      fail: (error) => target.fail(reader.failure(error)),
    },
    maxBytes,
    (limit) => `The response exceeds ${limit}; request a stream`,
  )
}

/** Sends one response per item. An empty last item only ends the stream. */
export class StreamInferSink<Written> implements ReplySink {
  readonly #reader: AnswerReader<Written>
  readonly #target: StreamTarget<Written>
  #head: ReplyHead | undefined

  constructor(reader: AnswerReader<Written>, target: StreamTarget<Written>) {
    this.#reader = reader
    this.#target = target
  }

  /** The handler does not stream. */
  whole(head: ReplyHead, body: Uint8Array): void {
    this.#head = head
    if (head.status >= 400 || body.byteLength > 0)
      this.#target.item(head, wholeAnswer(head, body, this.#reader))
    this.close()
  }

  /** Nothing is sent yet, because the first item determines status and headers. */
  open(head: ReplyHead): void {
    this.#head = head
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return (
      from === to || this.#target.item(this.#head!, this.#reader.read(this.#head!, chunk.subarray(from, to)))
    )
  }

  close(): void {
    this.#target.end(this.#head!)
  }

  fail(error: ServeError): void {
    this.#target.fail(this.#reader.failure(error))
  }
}

function wholeAnswer<Read>(head: ReplyHead, body: Uint8Array, reader: AnswerReader<Read>): Read {
  if (head.status >= 400) throw rejected(head, isNative(head) ? NO_BYTES : body)
  return reader.read(head, body)
}

const NO_BYTES = new Uint8Array(0)

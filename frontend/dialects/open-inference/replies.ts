import { ServeError } from '../../../common/errors.ts'
import { ByteCollector } from '../../jobs/byte-collector.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { type Answer, type AnswerReader, isNative, rejected } from './answers.ts'

/** The client's side of a unary request; REST and gRPC have one each. */
export interface UnaryTarget {
  answer(head: ReplyHead, answer: Answer): void
  fail(error: ServeError): void
}

/** The client's side of a streamed request. */
export interface StreamTarget {
  /** Returns false if the client's connection is full. */
  item(head: ReplyHead, answer: Answer): boolean
  /** Ends the stream; its last response was sent before. `head` is present even if there was none. */
  end(head: ReplyHead): void
  fail(error: ServeError): void
}

/** Sends the unary response. Items of a text stream are joined, up to `maxBytes` bytes. */
export class UnaryInferSink implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #reader: AnswerReader
  readonly #target: UnaryTarget
  readonly #maxBytes: number
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  constructor(reader: AnswerReader, target: UnaryTarget, maxBytes: number) {
    this.#reader = reader
    this.#target = target
    this.#maxBytes = maxBytes
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      this.#target.answer(head, wholeAnswer(head, body, this.#reader))
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
      const message = `The response exceeds max_response_size (${this.#maxBytes} bytes); request a stream`
      this.job!.abort(new ServeError('RESPONSE_TOO_LARGE', message), 'failed')
    }
    return true
  }

  close(): void {
    this.whole(this.#head!, this.#items!.bytes())
  }

  fail(error: ServeError): void {
    this.#target.fail(this.#reader.failure(error))
  }
}

/** Sends one response per item. An empty last item only ends the stream. */
export class StreamInferSink implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #reader: AnswerReader
  readonly #target: StreamTarget
  #head: ReplyHead | undefined

  constructor(reader: AnswerReader, target: StreamTarget) {
    this.#reader = reader
    this.#target = target
  }

  /** The handler does not stream. */
  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      if (head.status >= 400 || body.byteLength > 0) {
        this.#target.item(head, wholeAnswer(head, body, this.#reader))
      }
      this.#target.end(head)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  /** Nothing is sent yet, because the first item determines status and headers. */
  open(head: ReplyHead): void {
    this.#head = head
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (from === to) return true
    try {
      const item = chunk.subarray(from, to)
      return this.#target.item(this.#head!, this.#reader.read(this.#head!, item))
    } catch (thrown) {
      this.job!.abort(ServeError.from(thrown), 'failed')
      return true
    }
  }

  close(): void {
    this.#target.end(this.#head!)
  }

  fail(error: ServeError): void {
    this.#target.fail(this.#reader.failure(error))
  }
}

function wholeAnswer(head: ReplyHead, body: Uint8Array, reader: AnswerReader): Answer {
  if (head.status >= 400) throw rejected(head, isNative(head) ? NO_BYTES : body)
  return reader.read(head, body)
}

const NO_BYTES = new Uint8Array(0)

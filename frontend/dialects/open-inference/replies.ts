import { ServeError } from '../../../common/errors.ts'
import { ByteCollector } from '../../jobs/byte-collector.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { type Answer, type AnswerReader, isNative, rejected } from './answers.ts'

/** The client's side of a unary request; REST and gRPC have one each. */
export interface UnaryTarget<Written = Answer> {
  answer(head: ReplyHead, answer: Written): void
  fail(error: ServeError): void
}

/** The client's side of a streamed request. */
export interface StreamTarget<Written = Answer> {
  /** Returns false if the client's connection is full. */
  item(head: ReplyHead, answer: Written): boolean
  /** Ends the stream; its last response was sent before. `head` is present even if there was none. */
  end(head: ReplyHead): void
  fail(error: ServeError): void
}

/** Reads responses for the target, at once or in a thread. */
type Reader<Written> = AnswerReader<Written | Promise<Written>>

/** Sends the unary response. Items of a text stream are joined, up to `maxBytes` bytes. */
export class UnaryInferSink<Written> implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #reader: Reader<Written>
  readonly #target: UnaryTarget<Written>
  readonly #maxBytes: number
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  constructor(reader: Reader<Written>, target: UnaryTarget<Written>, maxBytes: number) {
    this.#reader = reader
    this.#target = target
    this.#maxBytes = maxBytes
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    const fail = (thrown: unknown): void => {
      const error = ServeError.from(thrown)
      this.job?.unsendable(error)
      this.fail(error)
    }
    try {
      const read = wholeAnswer(head, body, this.#reader)
      if (!(read instanceof Promise)) this.#target.answer(head, read)
      else read.then((answer) => this.#target.answer(head, answer)).catch(fail)
    } catch (thrown) {
      fail(thrown)
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

/**
 * Sends one response per item. An empty last item only ends the stream. While an item is read in a thread,
 * those after it wait, and the worker gets no credit for more.
 */
export class StreamInferSink<Written> implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #reader: Reader<Written>
  readonly #target: StreamTarget<Written>
  #head: ReplyHead | undefined
  /** Settles when all items so far were sent; undefined: nothing waits. */
  #sent: Promise<void> | undefined
  #failed = false

  constructor(reader: Reader<Written>, target: StreamTarget<Written>) {
    this.#reader = reader
    this.#target = target
  }

  /** The handler does not stream. */
  whole(head: ReplyHead, body: Uint8Array): void {
    this.#head = head
    try {
      if (head.status >= 400 || body.byteLength > 0) this.#send(head, wholeAnswer(head, body, this.#reader))
      this.close()
    } catch (thrown) {
      const error = ServeError.from(thrown)
      this.job!.unsendable(error)
      this.fail(error)
    }
  }

  /** Nothing is sent yet, because the first item determines status and headers. */
  open(head: ReplyHead): void {
    this.#head = head
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (from === to) return true
    try {
      return this.#send(this.#head!, this.#reader.read(this.#head!, chunk.subarray(from, to)))
    } catch (thrown) {
      if (this.#sent !== undefined) return this.#send(this.#head!, Promise.reject(ServeError.from(thrown)))
      this.#broke(thrown)
      return true
    }
  }

  close(): void {
    this.#inTurn(() => this.#target.end(this.#head!))
  }

  fail(error: ServeError): void {
    if (this.#failed) return
    this.#inTurn(() => {
      this.#failed = true
      this.#target.fail(this.#reader.failure(error))
    })
  }

  #send(head: ReplyHead, read: Written | Promise<Written>): boolean {
    if (this.#sent === undefined && !(read instanceof Promise)) return this.#target.item(head, read)
    // Its failure counts when its turn comes.
    if (read instanceof Promise) read.catch(() => undefined)
    const sent = (this.#sent ?? Promise.resolve())
      .then(() => (this.#failed ? true : this.#sendLate(head, read)))
      .catch((thrown: unknown) => this.#broke(thrown))
      .then((room) => {
        if (this.#sent !== sent) return
        this.#sent = undefined
        if (room === true) this.job!.drained()
      })
    this.#sent = sent
    return false
  }

  async #sendLate(head: ReplyHead, read: Written | Promise<Written>): Promise<boolean> {
    const answer = await read
    return this.#target.item(head, answer)
  }

  /** After the items that wait. */
  #inTurn(act: () => void): void {
    if (this.#sent === undefined) act()
    else
      this.#sent
        .then(() => (this.#failed ? undefined : act()))
        .catch((thrown: unknown) => this.#broke(thrown))
  }

  #broke(thrown: unknown): void {
    if (this.#failed) return
    this.#failed = true
    const error = ServeError.from(thrown)
    this.job!.abort(error, 'failed')
    this.job!.unsendable(error)
    this.#target.fail(this.#reader.failure(error))
  }
}

function wholeAnswer<Read>(head: ReplyHead, body: Uint8Array, reader: AnswerReader<Read>): Read {
  if (head.status >= 400) throw rejected(head, isNative(head) ? NO_BYTES : body)
  return reader.read(head, body)
}

const NO_BYTES = new Uint8Array(0)

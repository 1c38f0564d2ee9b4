import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { logFailure, type GrpcLog } from '../../edge/grpc/call-error.ts'
import { replyMetadata } from '../../edge/grpc/reply-metadata.ts'
import { ByteCollector } from '../../jobs/byte-collector.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { inferenceError } from './grpc-errors.ts'

/**
 * How the whole answer of a handler becomes the message of a unary call.
 * @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED
 */
type EncodeReply<Message> = (body: Uint8Array, head: ReplyHead) => Message

/** What is done for a unary call whose answer is not a PredictionResponse, too. */
interface UnaryCallTarget<Message> {
  /** For the log. */
  readonly rpc: string
  readonly call: Pick<ServerUnaryCall<unknown, Message>, 'sendMetadata'>
  readonly respond: sendUnaryData<Message>
  readonly encode: EncodeReply<Message>
}

/** Sends one message. The items of a streaming handler are joined, up to `maxBytes`. */
export class UnaryCallReply<Message> implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #target: UnaryCallTarget<Message>
  readonly #maxBytes: number
  readonly #log: GrpcLog
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  constructor(target: UnaryCallTarget<Message>, maxBytes: number, log: GrpcLog) {
    this.#target = target
    this.#maxBytes = maxBytes
    this.#log = log
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      const message = this.#target.encode(body, head)
      const metadata = replyMetadata(head)
      if (metadata !== undefined) this.#target.call.sendMetadata(metadata)
      this.#target.respond(null, message)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  open(head: ReplyHead): void {
    this.#head = head
    this.#items = new ByteCollector(this.#maxBytes)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (!this.#items!.add(chunk.subarray(from, to))) this.#overflow()
    return true
  }

  close(): void {
    this.whole(this.#head!, this.#items!.bytes())
  }

  fail(error: ServeError): void {
    logFailure(this.#log, this.#target.rpc, error)
    this.#target.respond(inferenceError(error))
  }

  #overflow(): void {
    const limit = `max_response_size (${this.#maxBytes} bytes)`
    const message = `The streamed answer is larger than ${limit}; use StreamPredictions`
    this.#items = undefined
    this.job?.abort(new ServeError('RESPONSE_TOO_LARGE', message), 'failed')
  }
}

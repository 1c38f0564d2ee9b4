import type { sendUnaryData, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { ByteCollector } from '../../jobs/byte-collector.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { inferenceError } from './grpc-errors.ts'
import { logFailure, type GrpcLog } from '../../edge/grpc/log.ts'
import { encodePrediction } from './grpc-prediction-codec.ts'
import { replyMetadata } from '../../edge/grpc/reply-metadata.ts'
import type { PredictionsRequest } from '../../edge/grpc/request.ts'

export type PredictionCall = ServerUnaryCall<PredictionsRequest, Buffer>
export type PredictionStream = ServerWritableStream<PredictionsRequest, Buffer>

/** Sends one message per item. */
export class StreamReply implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #call: PredictionStream
  readonly #log: GrpcLog
  #full = false

  constructor(call: PredictionStream, log: GrpcLog) {
    this.#call = call
    this.#log = log
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    this.open(head)
    this.#call.write(encodePrediction(body))
    this.#call.end()
  }

  open(head: ReplyHead): void {
    const metadata = replyMetadata(head)
    if (metadata !== undefined) this.#call.sendMetadata(metadata)
  }

  /** Full as soon as one message has to wait for those before it (EagerCall says when). */
  write(chunk: Uint8Array, from: number, to: number): boolean {
    this.#call.write(encodePrediction(chunk.subarray(from, to)), this.#onAccepted)
    this.#full = this.#call.writableLength > 0
    return !this.#full
  }

  close(): void {
    this.#call.end()
  }

  /** The event, not `destroy`: the client gets the messages so far, then the status. */
  fail(error: ServeError): void {
    logFailure(this.#log, 'StreamPredictions', error)
    this.#call.emit('error', inferenceError(error))
  }

  readonly #onAccepted = (): void => {
    if (!this.#full || this.#call.writableLength > 0) return
    this.#full = false
    this.job?.drained()
  }
}

/** How the whole answer of a handler becomes the message of a unary call. @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED */
type EncodeReply<Message> = (body: Uint8Array, head: ReplyHead) => Message

/** What is done for a unary call whose answer is not a PredictionResponse, too. */
interface UnaryTarget<Message> {
  /** For the log. */
  readonly rpc: string
  readonly call: Pick<ServerUnaryCall<unknown, Message>, 'sendMetadata'>
  readonly respond: sendUnaryData<Message>
  readonly encode: EncodeReply<Message>
}

/** Sends one message. The items of a streaming handler are joined, up to `maxBytes`. */
export class UnaryReply<Message> implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #target: UnaryTarget<Message>
  readonly #maxBytes: number
  readonly #log: GrpcLog
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined

  constructor(target: UnaryTarget<Message>, maxBytes: number, log: GrpcLog) {
    this.#target = target
    this.#maxBytes = maxBytes
    this.#log = log
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    let message: Message
    try {
      message = this.#target.encode(body, head)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
      return
    }
    const metadata = replyMetadata(head)
    if (metadata !== undefined) this.#target.call.sendMetadata(metadata)
    this.#target.respond(null, message)
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
    const message = `The streamed answer is larger than max_response_size (${this.#maxBytes} bytes); use StreamPredictions`
    this.#items = undefined
    this.job?.abort(new ServeError('RESPONSE_TOO_LARGE', message), 'failed')
  }
}

import type { ServerUnaryCall, sendUnaryData } from '@grpc/grpc-js'
import protobuf from 'protobufjs/minimal.js'
import { ServeError } from '../../../common/errors.ts'
import { type GrpcLog, logFailure } from '../../edge/grpc/call-error.ts'
import { replyMetadata } from '../../edge/grpc/metadata.ts'
import type { DuplexCall, StreamCall, StreamUser } from '../../edge/grpc/stream-call.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import type { SequenceHeaders } from '../../jobs/sequence-headers.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { AnsweredStream } from '../answered-stream.ts'
import { JoinedReply } from '../joined-reply.ts'
import { inferenceError, sequenceError } from './grpc-errors.ts'
import { type PredictionsRequest, sequenceIdOf, sequenceRequest } from './grpc-request.ts'

/** Keys of PredictionResponse { 1: prediction, 2: sequence_id, 3: status }, all length-delimited. */
const PREDICTION = 0x0a
const SEQUENCE_ID = 0x12
const STATUS = 0x1a
/** Keys of google.rpc.Status { 1: code, 2: message, 3: details }. */
const STATUS_CODE = 0x08
const STATUS_MESSAGE = 0x12
const STATUS_DETAILS = 0x1a
/** Keys of google.protobuf.Any { 1: type_url, 2: value } and google.rpc.ErrorInfo { 1: reason }. */
const ANY_TYPE_URL = 0x0a
const ANY_VALUE = 0x12
const ERROR_REASON = 0x0a

const ERROR_INFO = 'type.googleapis.com/google.rpc.ErrorInfo'

/** The error of one request of a StreamPredictions2 call. */
export interface MessageStatus {
  /** A gRPC status code. */
  code: number
  message: string
  /** TorchServe's class name. */
  reason: string
}

/**
 * Encodes `PredictionResponse { prediction }`. By hand, because it is done for every item of every stream;
 * the result shares no memory with `prediction`, so an item that waits for a slow reader does not pin the
 * frame it came in.
 */
export function encodePrediction(prediction: Uint8Array): Buffer {
  const length = prediction.length
  if (length === 0) return EMPTY
  const message = Buffer.allocUnsafe(1 + varintBytes(length) + length)
  message[0] = PREDICTION
  let offset = 1
  let rest = length
  for (; rest > 0x7f; rest >>>= 7) message[offset++] = (rest & 0x7f) | 0x80
  message[offset++] = rest
  message.set(prediction, offset)
  return message
}

/** Proto3 leaves an empty value out: the message has no bytes. */
const EMPTY = Buffer.alloc(0)

function varintBytes(value: number): number {
  let bytes = 1
  for (let rest = value >>> 7; rest > 0; rest >>>= 7) bytes++
  return bytes
}

/** Encodes `PredictionResponse { prediction, sequence_id }`; shares no memory with `prediction`. */
function encodeSequencePrediction(prediction: Uint8Array, sequenceId: string): Buffer {
  return message([PREDICTION, prediction], [SEQUENCE_ID, Buffer.from(sequenceId)])
}

/** Encodes `PredictionResponse { sequence_id, status }`. */
function encodeSequenceError({ code, message: text, reason }: MessageStatus, sequenceId: string): Buffer {
  const info = message([ERROR_REASON, Buffer.from(reason)])
  const details = message([ANY_TYPE_URL, Buffer.from(ERROR_INFO)], [ANY_VALUE, info])
  const status = message([STATUS_MESSAGE, Buffer.from(text)], [STATUS_DETAILS, details])
  return message(
    [SEQUENCE_ID, Buffer.from(sequenceId)],
    [STATUS, Buffer.concat([Buffer.of(STATUS_CODE, code), status])],
  )
}

/** A message of these fields. Proto3 leaves empty values out. */
function message(...fields: [key: number, value: Uint8Array][]): Buffer {
  const writer = protobuf.Writer.create()
  for (const [key, value] of fields) if (value.length > 0) writer.uint32(key).bytes(value)
  return writer.finish() as Buffer
}

/** A call of StreamPredictions: one message per item. */
export class PredictionStream implements ReplySink, StreamUser {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #call: StreamCall
  readonly #log: GrpcLog

  constructor(call: StreamCall, log: GrpcLog) {
    this.#call = call
    this.#log = log
    call.user = this
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    this.open(head)
    this.#call.send(encodePrediction(body))
    this.#call.end()
  }

  open(head: ReplyHead): void {
    this.#call.sendHead(replyMetadata(head))
  }

  /** An empty item adds nothing, as over HTTP. */
  write(chunk: Uint8Array, from: number, to: number): boolean {
    return from === to || this.#call.send(encodePrediction(chunk.subarray(from, to)))
  }

  close(): void {
    this.#call.end()
  }

  fail(error: ServeError): void {
    logFailure(this.#log, 'StreamPredictions', error)
    this.#call.fail(inferenceError(error))
  }

  drained(): void {
    this.job?.drained()
  }

  cancel(reason: AbandonReason): void {
    this.job?.cancel(reason)
  }
}

interface SequenceDeps {
  models: ModelOperations
  names: SequenceHeaders
  log: GrpcLog
}

/** A call of StreamPredictions2: every reply is a message with its sequence id. */
export class SequenceStream extends AnsweredStream<PredictionsRequest, SequenceReply> {
  readonly #deps: SequenceDeps

  constructor(call: DuplexCall<PredictionsRequest>, deps: SequenceDeps) {
    super(call)
    this.#deps = deps
    call.read(this)
  }

  /** False: the client's connection is full, the job hears `drained`. */
  send(message: Buffer): boolean {
    return this.call.send(message)
  }

  sendError(error: ServeError, sequenceId: string): void {
    logFailure(this.#deps.log, 'StreamPredictions2', error)
    this.call.send(encodeSequenceError(sequenceError(error), sequenceId))
  }

  message(message: PredictionsRequest): void {
    let sequenceId = message.sequence_id ?? ''
    try {
      sequenceId = sequenceIdOf(message, this.#deps.names)
      this.call.countRequest()
      const reply = new SequenceReply(this, sequenceId)
      const job = new Job(sequenceRequest(this.call, message, sequenceId, this.#deps.names), reply)
      reply.job = job
      this.#deps.models.submit(job)
      if (!job.ended) this.open.add(reply)
    } catch (thrown) {
      this.sendError(withModelMeant(ServeError.from(thrown), this.#deps.models), sequenceId)
    }
    this.settle()
  }
}

/** The reply to one message: one message per item. */
class SequenceReply implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #call: SequenceStream
  readonly #sequenceId: string

  constructor(call: SequenceStream, sequenceId: string) {
    this.#call = call
    this.#sequenceId = sequenceId
  }

  whole(_head: ReplyHead, body: Uint8Array): void {
    this.#call.send(encodeSequencePrediction(body, this.#sequenceId))
    this.#call.done(this)
  }

  open(): void {
    // Status and headers have no place in these messages.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#call.send(encodeSequencePrediction(chunk.subarray(from, to), this.#sequenceId))
  }

  close(): void {
    this.#call.done(this)
  }

  fail(error: ServeError): void {
    this.#call.sendError(error, this.#sequenceId)
    this.#call.done(this)
  }
}

/** A unary call, and how the handler's answer becomes its message. */
interface UnaryCall<Message> {
  /** For the log. */
  readonly rpc: string
  readonly call: Pick<ServerUnaryCall<unknown, Message>, 'sendMetadata'>
  readonly respond: sendUnaryData<Message>
  /** @throws ServeError INVALID_OUTPUT, HANDLER_REJECTED */
  readonly encode: (body: Uint8Array, head: ReplyHead) => Message
}

/** Sends one message. The items of a streaming handler are joined, up to `maxBytes`. */
export function unaryCallReply<Message>(
  { rpc, call, respond, encode }: UnaryCall<Message>,
  maxBytes: number,
  log: GrpcLog,
): JoinedReply {
  return new JoinedReply(
    {
      answer: (head, body) => {
        const message = encode(body, head)
        const metadata = replyMetadata(head)
        if (metadata !== undefined) call.sendMetadata(metadata)
        respond(null, message)
      },
      fail: (error) => {
        logFailure(log, rpc, error)
        respond(inferenceError(error))
      },
    },
    maxBytes,
    (limit) => `The streamed answer is larger than ${limit}; use StreamPredictions`,
  )
}

import { ServeError } from '../../../common/errors.ts'
import { logFailure, type GrpcLog } from '../../edge/grpc/call-error.ts'
import { replyMetadata } from '../../edge/grpc/reply-metadata.ts'
import type { DuplexCall, StreamCall, StreamUser } from '../../edge/grpc/stream-call.ts'
import { Job } from '../../jobs/job.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { SequenceHeaders } from '../../jobs/sequence-headers.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { AnsweredStream } from '../answered-stream.ts'
import { inferenceError, sequenceError } from './grpc-errors.ts'
import { sequenceIdOf, sequenceRequest, type PredictionsRequest } from './grpc-request.ts'
import { encodePrediction, encodeSequenceError, encodeSequencePrediction } from './grpc-response.ts'

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

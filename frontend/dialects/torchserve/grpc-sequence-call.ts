import { ServeError } from '../../../common/errors.ts'
import { type AbandonReason, Job } from '../../jobs/job.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { SequenceHeaders } from '../../jobs/sequence-headers.ts'
import { cancelReason, endAtDeadline } from '../../edge/grpc/deadline.ts'
import { sequenceError, type CallError } from './grpc-errors.ts'
import { guarded } from '../../edge/grpc/guarded.ts'
import { logFailure, type GrpcLog } from '../../edge/grpc/log.ts'
import { deadlineOf, type PredictionsRequest } from '../../edge/grpc/request.ts'
import { encodeSequenceError, encodeSequencePrediction } from './grpc-sequence-codec.ts'
import { sequenceIdOf, sequenceRequest, type SequenceStream } from './grpc-sequence-request.ts'

/** Messages of one call that may be worked on at the same time; the next is read when one of them has been answered. */
const MAX_OPEN_JOBS = 64

interface SequenceCallDeps {
  models: ModelOperations
  names: SequenceHeaders
  log: GrpcLog
}

/**
 * One call of StreamPredictions2: every message of the client is a job, every reply a message with its sequence id. When the
 * client has closed its side, the call ends with the last reply. No message is read while the client does not take its replies.
 */
export class SequenceCall {
  readonly #call: SequenceStream
  readonly #deps: SequenceCallDeps
  readonly #open = new Set<SequenceReply>()
  readonly #onAccepted: () => void
  #halfClosed = false
  #full = false
  #over = false

  constructor(call: SequenceStream, deps: SequenceCallDeps) {
    this.#call = call
    this.#deps = deps
    const guard = <Args extends unknown[]>(listener: (...args: Args) => void) =>
      guarded(deps.log, (error) => this.#fail(error), listener)
    const halfClose = (): void => {
      this.#halfClosed = true
      this.#settle()
    }
    const leave = (): void => this.#cancel(cancelReason(deadlineOf(call)))
    const expire = (): void => this.#cancel('deadline')
    const take = (message: PredictionsRequest): void => this.#take(message)
    this.#onAccepted = guard(() => this.#accepted())
    call.on('data', guard(take))
    call.on('end', guard(halfClose))
    call.on('cancelled', guard(leave))
    endAtDeadline(call, guard(expire))
  }

  /** False: the client's connection is full, the job hears `drained`. */
  send(message: Buffer): boolean {
    if (this.#over) return true
    this.#call.write(message, this.#onAccepted)
    this.#full = this.#call.writableLength > 0
    return !this.#full
  }

  sendError(error: ServeError, sequenceId: string): void {
    logFailure(this.#deps.log, 'StreamPredictions2', error)
    this.send(encodeSequenceError(sequenceError(error), sequenceId))
  }

  done(reply: SequenceReply): void {
    this.#open.delete(reply)
    this.#settle()
  }

  #take(message: PredictionsRequest): void {
    if (this.#over) return
    let sequenceId = message.sequence_id ?? ''
    try {
      sequenceId = sequenceIdOf(message, this.#deps.names)
      const reply = new SequenceReply(this, sequenceId)
      const job = new Job(sequenceRequest(this.#call, message, sequenceId, this.#deps.names), reply)
      reply.job = job
      this.#deps.models.submit(job)
      if (!job.ended) this.#open.add(reply)
    } catch (thrown) {
      this.sendError(ServeError.from(thrown), sequenceId)
    }
    this.#settle()
  }

  /** Ends the call after its last reply; else reads on, or stops reading for a while. */
  #settle(): void {
    if (this.#over) return
    if (this.#halfClosed) {
      if (this.#open.size > 0) return
      this.#over = true
      this.#call.end()
    } else if (this.#full || this.#open.size >= MAX_OPEN_JOBS) {
      this.#call.pause()
    } else if (this.#call.isPaused()) {
      this.#call.resume()
    }
  }

  #cancel(reason: AbandonReason): void {
    if (this.#over) return
    this.#over = true
    for (const reply of this.#open) reply.job!.cancel(reason)
    this.#open.clear()
  }

  #fail(error: CallError): void {
    if (this.#over) return
    this.#cancel('failed')
    this.#call.emit('error', error)
    this.#call.resume()
  }

  #accepted(): void {
    if (!this.#full || this.#call.writableLength > 0) return
    this.#full = false
    for (const reply of this.#open) reply.job!.drained()
    this.#settle()
  }
}

/** The reply to one message: one message per item. */
class SequenceReply implements ReplySink {
  /** Set before the job is submitted. */
  job: Job | undefined
  readonly #call: SequenceCall
  readonly #sequenceId: string

  constructor(call: SequenceCall, sequenceId: string) {
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

import {
  status,
  type sendUnaryData,
  type ServerDuplexStream,
  type ServerUnaryCall,
  type UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { ServeError } from '../../protocol/errors.ts'
import type { Authorizer } from '../auth/authorizer.ts'
import type { Settings } from '../config/settings.ts'
import { Job } from '../models/job.ts'
import type { ModelOperations } from '../models/operations.ts'
import { inferenceError } from './errors.ts'
import { logFailure, type GrpcLog } from './log.ts'
import { encodePrediction } from './prediction-codec.ts'
import { deadlineOf, inferenceRequest, type PredictionsRequest } from './request.ts'
import { StreamReply, UnaryReply, type PredictionCall, type PredictionStream } from './send-reply.ts'
import { authorize } from './token.ts'

export interface InferenceDeps {
  models: ModelOperations
  authorizer: Authorizer
  settings: Pick<Settings, 'maxResponseSize'>
  log: GrpcLog
}

/** How much earlier than our clock says a client's own deadline may fire. */
const DEADLINE_TOLERANCE_MS = 50
/** The longest time that setTimeout takes. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** `InferenceAPIsService` (spec 3.1). Responses are handed to grpc-js as bytes. */
export class InferenceService {
  readonly #deps: InferenceDeps

  constructor(deps: InferenceDeps) {
    this.#deps = deps
  }

  /** The handlers by rpc name. */
  implementation(): UntypedServiceImplementation {
    return {
      Ping: this.#ping,
      Predictions: this.#predictions,
      StreamPredictions: this.#streamPredictions,
      StreamPredictions2: this.#streamPredictions2,
    }
  }

  readonly #ping = (call: ServerUnaryCall<unknown, Buffer>, respond: sendUnaryData<Buffer>): void => {
    try {
      authorize(this.#deps.authorizer, 'inference', call)
      const health = JSON.stringify({ status: this.#deps.models.health() }, null, 2)
      // TorchServeHealthResponse { 1: health } has the wire format of PredictionResponse { 1: prediction }.
      respond(null, encodePrediction(Buffer.from(health)))
    } catch (thrown) {
      const error = ServeError.from(thrown)
      logFailure(this.#deps.log, 'Ping', error)
      respond(inferenceError(error))
    }
  }

  readonly #predictions = (call: PredictionCall, respond: sendUnaryData<Buffer>): void => {
    const { settings, log } = this.#deps
    const reply = new UnaryReply(call, respond, settings.maxResponseSize, log)
    this.#submit(call, reply)
  }

  readonly #streamPredictions = (call: PredictionStream): void => {
    const job = this.#submit(call, new StreamReply(call, this.#deps.log))
    if (job !== undefined) endAtDeadline(call, job)
  }

  readonly #streamPredictions2 = (call: ServerDuplexStream<PredictionsRequest, Buffer>): void => {
    try {
      authorize(this.#deps.authorizer, 'inference', call)
      const details = 'StreamPredictions2 is not implemented yet; use StreamPredictions'
      call.emit('error', { code: status.UNIMPLEMENTED, details })
    } catch (thrown) {
      call.emit('error', inferenceError(ServeError.from(thrown)))
    }
  }

  #submit(call: PredictionCall | PredictionStream, reply: UnaryReply | StreamReply): Job | undefined {
    try {
      authorize(this.#deps.authorizer, 'inference', call)
      const job = new Job(inferenceRequest(call), reply)
      reply.job = job
      this.#deps.models.submit(job)
      // Also emitted after every normal end; by then the job has ended and `cancel` does nothing.
      call.on('cancelled', () => {
        if (!job.ended) job.cancel(isPast(job.request.deadline) ? 'deadline' : 'client left')
      })
      return job
    } catch (thrown) {
      reply.fail(ServeError.from(thrown))
      return undefined
    }
  }
}

/**
 * grpc-js answers a deadline by itself, but says `cancelled` only once the status has left: never, when the reader of a
 * stream stands still. Messages that still wait must not follow the status, hence `destroy`, which sends nothing itself.
 */
function endAtDeadline(call: PredictionStream, job: Job): void {
  const deadline = deadlineOf(call)
  if (deadline === undefined) return
  const rest = Math.min(Math.max(deadline - Date.now(), 0), MAX_TIMEOUT_MS)
  const timer = setTimeout(() => {
    job.cancel('deadline')
    call.destroy()
  }, rest)
  call.on('cancelled', () => clearTimeout(timer))
}

function isPast(deadline: number | undefined): boolean {
  return deadline !== undefined && Date.now() >= deadline - DEADLINE_TOLERANCE_MS
}

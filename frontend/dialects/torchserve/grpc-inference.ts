import type { sendUnaryData, ServerUnaryCall, UntypedServiceImplementation } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { headerLine } from '../../../common/header-lines.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { Settings } from '../../config/settings.ts'
import type { JobRequest, Job } from '../../jobs/job.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { sequenceHeadersOf, type SequenceSettings } from '../../jobs/sequence-headers.ts'
import { endAtDeadline } from '../../edge/grpc/deadline.ts'
import type { WorkflowOperations } from '../../workflows/operations.ts'
import { inferenceError } from './grpc-errors.ts'
import { logFailure, type GrpcLog } from '../../edge/grpc/log.ts'
import { encodePrediction } from './grpc-prediction-codec.ts'
import { jobRequest } from '../../edge/grpc/request.ts'
import { StreamReply, UnaryReply, type PredictionCall, type PredictionStream } from './grpc-reply.ts'
import { SequenceCall } from './grpc-sequence-call.ts'
import type { SequenceStream } from './grpc-sequence-request.ts'
import { submitCall } from '../../edge/grpc/submit-call.ts'
import { authorize } from '../../edge/grpc/token.ts'

interface InferenceDeps {
  models: ModelOperations
  workflows: WorkflowOperations
  authorizer: Authorizer
  settings: Pick<Settings, 'maxResponseSize'> & SequenceSettings
  log: GrpcLog
}

/** `InferenceAPIsService` (spec 3.1). Responses are handed to grpc-js as bytes. */
export class InferenceService {
  readonly #deps: InferenceDeps
  readonly #takers: Parameters<typeof submitCall>[0]

  constructor(deps: InferenceDeps) {
    this.#deps = deps
    this.#takers = { models: { submit: this.#take }, authorizer: deps.authorizer, log: deps.log }
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
    const target = { rpc: 'Predictions', call, respond, encode: encodePrediction }
    submitCall(this.#takers, call, new UnaryReply(target, settings.maxResponseSize, log), this.#request)
  }

  readonly #streamPredictions = (call: PredictionStream): void => {
    const job = submitCall(this.#takers, call, new StreamReply(call, this.#deps.log), this.#request)
    if (job !== undefined) endAtDeadline(call, () => job.cancel('deadline'))
  }

  readonly #streamPredictions2 = (call: SequenceStream): void => {
    const { models, authorizer, settings, log } = this.#deps
    try {
      authorize(authorizer, 'inference', call)
      new SequenceCall(call, { models, names: sequenceHeadersOf(settings), log })
    } catch (thrown) {
      call.emit('error', inferenceError(ServeError.from(thrown)))
    }
  }

  readonly #request = (call: PredictionCall | PredictionStream): JobRequest => {
    const request = jobRequest(call)
    const { sequence_id: sequenceId } = call.request
    if (sequenceId) request.headers += headerLine(this.#deps.settings.tsHeaderKeySequenceId, sequenceId)
    return request
  }

  /** A name that no model has may be a workflow's: TorchServe's messages have no other place for it. */
  readonly #take = (job: Job): void => {
    const { models, workflows } = this.#deps
    try {
      models.submit(job)
    } catch (thrown) {
      const { modelName, modelVersion } = job.request
      const unknown = ServeError.from(thrown).code === 'MODEL_NOT_FOUND'
      if (!unknown || modelVersion !== undefined || !workflows.has(modelName)) throw thrown
      workflows.submit(job)
    }
  }
}

import { callOf, type GrpcCall } from '../../edge/grpc/call.ts'
import type {
  sendUnaryData,
  ServerDuplexStream,
  ServerUnaryCall,
  ServerWritableStream,
  UntypedServiceImplementation,
} from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { loadService, withEncodedResponses, type LoadedService } from '../../edge/grpc/definitions.ts'
import { deadlineOf, submitUnary } from '../../edge/grpc/metadata.ts'
import { DuplexCall, StreamCall } from '../../edge/grpc/stream-call.ts'
import { unaryRpc } from '../../edge/grpc/unary-rpc.ts'
import { Job } from '../../jobs/job.ts'
import type { JobRequest } from '../../jobs/job-request.ts'
import { sequenceHeadersOf, sequenceIdLine } from '../../jobs/sequence-headers.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { GrpcDeps, GrpcDialect } from '../grpc-dialect.ts'
import { inferenceError } from './grpc-errors.ts'
import { encodePrediction, PredictionStream, SequenceStream, unaryCallReply } from './grpc-reply.ts'
import { jobRequest, type CallFacts, type PredictionsRequest } from './grpc-request.ts'

let definition: LoadedService | undefined

/** TorchServe's `InferenceAPIsService`. Responses are handed to grpc-js as bytes. */
export const torchserveInferenceGrpc: GrpcDialect = {
  listeners: ['inference'],
  facts: () => {
    const name = 'org.pytorch.serve.grpc.inference.InferenceAPIsService'
    definition ??= withEncodedResponses(loadService('inference.proto', name))
    return { definition, token: () => 'inference', toCallError: inferenceError, eager: true }
  },
  implement: (deps) => new InferenceService(deps).implementation(),
}

class InferenceService {
  readonly #deps: GrpcDeps

  constructor(deps: GrpcDeps) {
    this.#deps = deps
  }

  /** The handlers by rpc name. */
  implementation(): UntypedServiceImplementation {
    return {
      Ping: unaryRpc(this.#deps.log, 'Ping', {
        answer: (_request, call) => this.#ping(call),
        toCallError: inferenceError,
      }),
      Predictions: this.#predictions,
      StreamPredictions: this.#streamPredictions,
      StreamPredictions2: this.#streamPredictions2,
    }
  }

  #ping({ models }: GrpcCall): Buffer {
    const health = JSON.stringify({ status: models.health() }, null, 2)
    // TorchServeHealthResponse { 1: health } has the wire format of PredictionResponse { 1: prediction }.
    return encodePrediction(Buffer.from(health))
  }

  readonly #predictions = (
    call: ServerUnaryCall<PredictionsRequest, Buffer>,
    respond: sendUnaryData<Buffer>,
  ): void => {
    const { settings, log } = this.#deps
    const target = { rpc: 'Predictions', call, respond, encode: encodePrediction }
    const reply = unaryCallReply(target, settings.maxResponseSize, log)
    try {
      const facts = { metadata: call.metadata, deadline: deadlineOf(call), sender: callOf(call) }
      submitUnary(this.#submitter(facts.sender), call, this.#request(call.request, facts), reply)
    } catch (thrown) {
      reply.fail(ServeError.from(thrown))
    }
  }

  readonly #streamPredictions = (call: ServerWritableStream<PredictionsRequest, Buffer>): void => {
    const stream = new StreamCall(call, this.#deps.log)
    const reply = new PredictionStream(stream, this.#deps.log)
    try {
      reply.job = new Job(this.#request(call.request, stream), reply)
      this.#submitter(stream.sender).submit(reply.job)
    } catch (thrown) {
      reply.fail(ServeError.from(thrown))
    }
  }

  readonly #streamPredictions2 = (call: ServerDuplexStream<PredictionsRequest, Buffer>): void => {
    const { settings, log } = this.#deps
    const { models } = callOf(call)
    new SequenceStream(new DuplexCall(call, log), { models, names: sequenceHeadersOf(settings), log })
  }

  #request(message: PredictionsRequest, facts: CallFacts): JobRequest {
    const request = jobRequest(message, facts)
    const { sequence_id: sequenceId } = message
    if (sequenceId) request.headers += sequenceIdLine(sequenceId, sequenceHeadersOf(this.#deps.settings))
    return request
  }

  /** A name that no model has may be a workflow's: TorchServe's messages have no other place for it. */
  #submitter({ models, workflows }: GrpcCall): { submit(job: Job): void } {
    return {
      submit: (job) => {
        try {
          models.submit(job)
        } catch (thrown) {
          const { modelName, modelVersion } = job.request
          const error = ServeError.from(thrown)
          const unknown = error.code === 'MODEL_NOT_FOUND'
          if (!unknown || modelVersion !== undefined || !workflows.has(modelName))
            throw withModelMeant(error, models)
          workflows.submit(job)
        }
      },
    }
  }
}

import { ServeError } from '../../../common/errors.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { AnswerFacts } from './answers.ts'
import { StreamInferSink, type StreamTarget } from './replies.ts'
import { logFailure } from '../../edge/grpc/call-error.ts'
import type { DuplexCall } from '../../edge/grpc/stream-call.ts'
import { AnsweredStream } from '../answered-stream.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import { callError } from './grpc-errors.ts'
import {
  inferResponse,
  type ModelInferRequest,
  type ModelInferResponse,
  type ParameterMap,
} from './grpc-messages.ts'
import type { StreamForm } from './grpc-stream.ts'
import { asked, callFor } from './grpc-asked.ts'

/** Metadata of Triton's clients: the first error ends the stream. */
export const GRPC_ERROR = 'triton_grpc_error'

const FINAL = 'triton_final_response'
const WANTS_EMPTY_FINAL = 'triton_enable_empty_final_response'

/**
 * ModelStreamInfer as Triton has it: each message is a request of its own for the model that it names,
 * several run at a time, and the answers are told apart by their ids. A failed request is a message; the call
 * goes on, and ends with OK.
 */
export class TritonStream extends AnsweredStream<ModelInferRequest, TritonReply> {
  readonly #deps: GrpcCallDeps
  readonly #form: StreamForm
  readonly #failsWhole: boolean

  constructor(stream: DuplexCall<ModelInferRequest>, deps: GrpcCallDeps, form: StreamForm) {
    super(stream)
    this.#deps = deps
    this.#form = form
    this.#failsWhole = stream.metadata.get(GRPC_ERROR).some((value) => value === 'true')
  }

  message(message: ModelInferRequest): void {
    const { id = '', model_name: modelName = '', model_version: modelVersion = '' } = message
    let reply = new TritonReply(this, { id, modelName, modelVersion }, false, false)
    this.open.add(reply)
    try {
      const request = asked(this.#deps, message, this.call.metadata)
      const wantsFinal = message.parameters?.[WANTS_EMPTY_FINAL]?.bool_param === true
      this.open.delete(reply)
      reply = new TritonReply(this, request.facts, request.raw, wantsFinal)
      this.open.add(reply)
      this.call.countRequest()
      const own = { ...request, message: { ...message, parameters: withoutTriton(message.parameters) } }
      const { deadline } = this.call
      const { request: infer, reader } = callFor(this.#deps, own, deadline, {
        stream: true,
        raw: request.raw,
      })
      const sink = new StreamInferSink(reader, reply)
      reply.job = new Job(infer, sink)
      this.#deps.models.submit(reply.job)
    } catch (thrown) {
      reply.fail(ServeError.from(thrown))
    }
    this.settle()
  }

  /** False: the connection is full. */
  send(message: ModelInferResponse, final: boolean): boolean {
    const parameters = { ...message.parameters, [FINAL]: { bool_param: final } }
    return this.call.send(this.#form.encode.triton({ infer_response: { ...message, parameters } }))
  }

  sendError(error: ServeError, facts: AnswerFacts): void {
    logFailure(this.#deps.log, 'ModelStreamInfer', error)
    const told = callError(withModelMeant(error, this.#deps.models))
    if (this.#failsWhole) {
      this.call.fail(told)
      this.cancel('failed')
      return
    }
    const answer = { ...facts, outputs: [], parameters: { [FINAL]: true } }
    const message = {
      error_message: told.details || error.code,
      infer_response: inferResponse(answer, false),
    }
    this.call.send(this.#form.encode.triton(message))
  }
}

/**
 * The replies to one message. The last of a handler that answers whole is marked as such; a stream's end is a
 * message only if the client asked for it.
 */
class TritonReply implements StreamTarget<ModelInferResponse> {
  job: Job | undefined
  readonly #call: TritonStream
  readonly #facts: AnswerFacts
  readonly #raw: boolean
  readonly #wantsFinal: boolean
  #marked = false

  constructor(call: TritonStream, facts: AnswerFacts, raw: boolean, wantsFinal: boolean) {
    this.#call = call
    this.#facts = facts
    this.#raw = raw
    this.#wantsFinal = wantsFinal
  }

  item(_head: ReplyHead, message: ModelInferResponse): boolean {
    this.#marked = this.job?.streaming !== true
    return this.#call.send(message, this.#marked)
  }

  end(): void {
    if (!this.#marked && this.#wantsFinal)
      this.#call.send(inferResponse({ ...this.#facts, outputs: [] }, this.#raw), true)
    this.#call.done(this)
  }

  fail(error: ServeError): void {
    this.#call.sendError(error, this.#facts)
    this.#call.done(this)
  }
}

/** What Triton's clients say to the server, not to the model. */
function withoutTriton(parameters: ParameterMap | undefined): ParameterMap | undefined {
  if (parameters === undefined) return undefined
  const kept = Object.entries(parameters).filter(([name]) => !name.startsWith('triton_'))
  return kept.length === 0 ? undefined : Object.fromEntries(kept)
}

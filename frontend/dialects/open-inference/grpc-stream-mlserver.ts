import { ServeError } from '../../../common/errors.ts'
import { encodeRequest } from '../../../common/tensors/message.ts'
import { Job } from '../../jobs/job.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import { checkSize } from '../../jobs/job-request.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import { StreamInferSink, type StreamTarget } from './replies.ts'
import { logFailure } from '../../edge/grpc/call-error.ts'
import type { DuplexCall, MessageUser } from '../../edge/grpc/stream-call.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import { replyMetadata } from '../../edge/grpc/metadata.ts'
import { callError } from './grpc-errors.ts'
import { inputCheck } from './declared-inputs.ts'
import { inferRequest, type ModelInferRequest, type ModelInferResponse } from './grpc-messages.ts'
import { CallFeed, type StreamForm } from './grpc-stream.ts'
import { asked, callFor, type Asked } from './grpc-asked.ts'

/**
 * ModelStreamInfer as MLServer has it: all messages are for the model that the first names. A handler with
 * predictStream gets them as one request; for any other each is a request of its own, one after the other. An
 * error ends the call with its status.
 */
export class MlserverStream implements MessageUser<ModelInferRequest>, StreamTarget<ModelInferResponse> {
  readonly #stream: DuplexCall<ModelInferRequest>
  readonly #deps: GrpcCallDeps
  readonly #form: StreamForm
  #first: Asked | undefined
  #feed: CallFeed | undefined
  #job: Job | undefined
  #halfClosed = false
  #headSent = false

  constructor(stream: DuplexCall<ModelInferRequest>, deps: GrpcCallDeps, form: StreamForm) {
    this.#stream = stream
    this.#deps = deps
    this.#form = form
  }

  message(message: ModelInferRequest): void {
    try {
      if (this.#feed !== undefined) this.#pass(message)
      else this.#ask(message)
    } catch (thrown) {
      this.#failed(ServeError.from(thrown))
    }
  }

  halfClosed(): void {
    this.#halfClosed = true
    this.#feed?.end()
    if (this.#job === undefined) this.#stream.end()
  }

  drained(): void {
    this.#job?.drained()
    this.#read()
  }

  cancel(reason: AbandonReason): void {
    this.#job?.cancel(reason)
  }

  item(head: ReplyHead, message: ModelInferResponse): boolean {
    if (!this.#headSent) {
      this.#headSent = true
      this.#stream.sendHead(replyMetadata({ ...head, contentType: undefined }))
    }
    return this.#stream.send(this.#form.encode.mlserver(message))
  }

  /** One request has ended: with predictStream that is all. */
  end(): void {
    this.#job = undefined
    if (this.#feed !== undefined || this.#halfClosed) this.#stream.end()
    else this.#read()
  }

  fail(error: ServeError): void {
    logFailure(this.#deps.log, 'ModelStreamInfer', error)
    this.#stream.fail(callError(withModelMeant(error, this.#deps.models)))
  }

  #failed(error: ServeError): void {
    this.fail(error)
    this.#job?.cancel('failed')
  }

  #ask(message: ModelInferRequest): void {
    const first = this.#first
    const named = first === undefined ? message : { ...message, ...nameOf(first) }
    const { metadata } = this.#stream
    // All messages of a call go to the version that the first one went to.
    const request = asked(this.#deps, named, metadata, first?.target.routedTo)
    this.#first ??= request
    const { raw } = first ?? request
    const { takesStreams } = request.target
    if (!takesStreams) this.#stream.reading(false)
    const { request: job, reader } = callFor(this.#deps, request, this.#stream.deadline, {
      stream: true,
      raw,
    })
    if (takesStreams) job.feed = this.#feed = new CallFeed(() => this.#read())
    const sink = new StreamInferSink(reader, this)
    this.#job = new Job(job, sink)
    this.#deps.models.submit(this.#job)
  }

  /** A further payload of the one request. */
  #pass(message: ModelInferRequest): void {
    const { maxRequestSize } = this.#deps.settings
    const payload = inferRequest(message, maxRequestSize)
    const { target, facts } = this.#first!
    inputCheck(target.status)?.check(payload)
    const data = encodeRequest({ ...payload, id: facts.id })
    checkSize({ parts: [{ name: '', data }], headers: '' }, maxRequestSize)
    if (!this.#feed!.push(data)) this.#stream.reading(false)
  }

  /** Without a feed the next message is a request of its own, and waits for the end of the one before it. */
  #read(): void {
    const waits = this.#feed === undefined && this.#job !== undefined
    if (!waits && !this.#stream.full) this.#stream.reading(true)
  }
}

function nameOf({ facts, version }: Asked): Pick<ModelInferRequest, 'model_name' | 'model_version'> {
  return { model_name: facts.modelName, model_version: version }
}

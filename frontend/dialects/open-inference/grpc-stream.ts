import type { Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { DuplexCall, MessageUser } from '../../edge/grpc/stream-call.ts'
import type { InputFeed, InputPort } from '../../jobs/job-request.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import { callError } from './grpc-errors.ts'
import type { ModelInferRequest, ModelInferResponse, ModelStreamInferResponse } from './grpc-messages.ts'
import { MlserverStream } from './grpc-stream-mlserver.ts'
import { GRPC_ERROR, TritonStream } from './grpc-stream-triton.ts'

/** Messages that may be with the worker before its handler has asked for them. */
const MAX_UNTAKEN = 4

/** The further messages of a call on their way to the worker that has its request. */
export class CallFeed implements InputFeed {
  readonly #onRoom: () => void
  #port: InputPort | undefined
  #waiting: Buffer[] = []
  /** Inputs at the worker, less those that the handler has asked for. */
  #untaken = 0
  #ended = false

  /** `onRoom` is called when `push` may be called again after it returned false. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom
  }

  /** False: read no further message for now. */
  push(message: Buffer): boolean {
    this.#waiting.push(message)
    this.#pass()
    return this.#hasRoom
  }

  end(): void {
    this.#ended = true
    this.#pass()
  }

  connect(port: InputPort): void {
    this.#port = port
    this.#pass()
    if (this.#hasRoom) this.#onRoom()
  }

  taken(inputs: number): void {
    this.#untaken -= inputs
    this.#pass()
    if (this.#hasRoom) this.#onRoom()
  }

  get waitsForClient(): boolean {
    return this.#untaken < 0 && !this.#ended
  }

  get #hasRoom(): boolean {
    return this.#waiting.length === 0
  }

  #pass(): void {
    if (this.#port === undefined) return
    while (this.#waiting.length > 0 && this.#untaken < MAX_UNTAKEN) {
      this.#untaken += 1
      this.#port.input(this.#waiting.shift())
    }
    if (!this.#ended || this.#waiting.length > 0) return
    this.#port.input(undefined)
    this.#port = undefined
  }
}

/** The two answers that the protocol's servers send on ModelStreamInfer (docs/open-inference.md). */
export type StreamShape = 'mlserver' | 'triton'

/** What a listener adds: the shape of its streams, and how messages become bytes in either. */
export interface StreamForm {
  readonly shape: StreamShape
  readonly encode: {
    readonly mlserver: (message: ModelInferResponse) => Buffer
    readonly triton: (message: ModelStreamInferResponse) => Buffer
  }
}

/**
 * A call of ModelStreamInfer. The first message tells who is asked, and whether the client expects Triton's
 * answers.
 */
export class InferStream implements MessageUser<ModelInferRequest> {
  readonly #call: DuplexCall<ModelInferRequest>
  readonly #deps: GrpcCallDeps
  readonly #form: StreamForm
  #user: MessageUser<ModelInferRequest> | undefined

  constructor(call: DuplexCall<ModelInferRequest>, deps: GrpcCallDeps, form: StreamForm) {
    this.#call = call
    this.#deps = deps
    this.#form = form
    call.read(this)
  }

  message(message: ModelInferRequest): void {
    this.#user ??= this.#choose(message)
    this.#user.message(message)
  }

  halfClosed(): void {
    if (this.#user !== undefined) this.#user.halfClosed()
    else
      this.#call.fail(
        callError(
          new ServeError('INVALID_ARGUMENT', 'The stream must have a request, and ended without one'),
        ),
      )
  }

  drained(): void {
    this.#user?.drained()
  }

  cancel(reason: Parameters<MessageUser<ModelInferRequest>['cancel']>[0]): void {
    this.#user?.cancel(reason)
  }

  #choose(first: ModelInferRequest): MessageUser<ModelInferRequest> {
    const shape = streamShape(this.#call.metadata, first, this.#form.shape)
    const Stream = shape === 'triton' ? TritonStream : MlserverStream
    return new Stream(this.#call, this.#deps, this.#form)
  }
}

/** Metadata `x-stream-shape` says it, then what only Triton's clients send, then the listener. */
function streamShape(metadata: Metadata, first: ModelInferRequest, listener: StreamShape): StreamShape {
  const [said] = metadata.get('x-stream-shape')
  if (said === 'triton') return 'triton'
  if (said === 'oip' || said === 'mlserver') return 'mlserver'
  if (metadata.get(GRPC_ERROR).length > 0) return 'triton'
  const triton = Object.keys(first.parameters ?? {}).some((name) => name.startsWith('triton_'))
  return triton ? 'triton' : listener
}

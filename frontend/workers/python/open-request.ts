import type { HandlerMethod } from '../../../common/handler-methods.ts'
import { itemCost } from '../../../protocol/credit-stream.ts'
import type { PredictRequest } from '../../../protocol/messages.ts'
import type { OtfRequest } from './otf/encode.ts'
import { Backlog } from './backlog.ts'
import { truthfulHeaders } from './truthful-headers.ts'

const NO_PARTS: OtfRequest['parts'] = []

/** A request that the handler has not ended. */
export class OpenRequest implements OtfRequest {
  /** Its number in the frontend. */
  readonly id: number
  /** Its id in the worker, unique among open requests. */
  readonly requestId: string
  readonly method: HandlerMethod
  readonly headers: string
  parts: OtfRequest['parts']
  /** The request was cancelled. */
  cancelled = false
  /** What arrived and waits for room. */
  readonly backlog = new Backlog()
  /** The backlog is being given away. */
  releasing = false
  readonly #window: number
  #unpaid = 0

  constructor(request: PredictRequest) {
    this.id = request.id
    this.requestId = request.requestId
    this.method = request.method
    this.headers = truthfulHeaders(request)
    this.parts = request.parts
    this.#window = request.window
  }

  /**
   * Whether one call of the handler may serve both: it reads from the first request's headers which method is
   * asked for. A describe is always alone.
   */
  sharesWith({ method }: OpenRequest): boolean {
    return method === this.method && method !== 'describe'
  }

  /** Whether its reply has a window's bytes that the client has not read. */
  get full(): boolean {
    return this.#unpaid - this.backlog.cost >= this.#window
  }

  /** Bytes beyond its window that the client has not read; 0 if there are none. */
  get overdraft(): number {
    return Math.max(0, this.#unpaid - this.#window)
  }

  /** An item arrived. */
  took(bytes: number): void {
    this.#unpaid += itemCost(bytes)
  }

  /** The client read some bytes. */
  paid(bytes: number): void {
    this.#unpaid -= bytes
  }

  /** The worker has the input and keeps it for later steps. */
  sent(): void {
    this.parts = NO_PARTS
  }
}

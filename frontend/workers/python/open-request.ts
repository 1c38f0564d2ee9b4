import type { HandlerMethod } from '../../../common/handler-methods.ts'
import { itemCost, type PredictRequest } from '../../../protocol/messages.ts'
import type { OtfRequest } from './otf/encode.ts'
import { truthfulHeaders } from './truthful-headers.ts'

const NO_PARTS: OtfRequest['parts'] = []

/** A request that the handler has not ended. */
export class OpenRequest implements OtfRequest {
  /** Its number for the frontend. */
  readonly id: number
  /** Its name for the worker, which no other open request has. */
  readonly requestId: string
  readonly method: HandlerMethod
  readonly headers: string
  parts: OtfRequest['parts']
  /** Nobody waits for it any more. */
  cancelled = false
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

  /** Whether one call of the handler may answer both: it reads in the first one's headers what is asked. A question about the model is asked alone. */
  sharesWith({ method }: OpenRequest): boolean {
    return method === this.method && method !== 'describe'
  }

  /** Bytes beyond its window that its client has not taken. */
  get overdraft(): number {
    return this.#unpaid - this.#window
  }

  /** An item came. */
  took(bytes: number): void {
    this.#unpaid += itemCost(bytes)
  }

  /** Its client took some. */
  paid(bytes: number): void {
    this.#unpaid -= bytes
  }

  /** The worker has its input, and keeps it where it needs it again. */
  sent(): void {
    this.parts = NO_PARTS
  }
}

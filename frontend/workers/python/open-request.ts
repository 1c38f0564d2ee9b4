import { itemCost, type PredictRequest } from '../../../protocol/messages.ts'
import type { OtfRequest } from './otf/encode.ts'

const NO_PARTS: OtfRequest['parts'] = []

/** A request that the handler has not ended. */
export class OpenRequest implements OtfRequest {
  /** Its number for the frontend. */
  readonly id: number
  /** Its name for the worker, which no other open request has. */
  readonly requestId: string
  readonly headers: string
  parts: OtfRequest['parts']
  /** A question about the model (describe), which is asked alone. */
  readonly alone: boolean
  /** Nobody waits for it any more. */
  cancelled = false
  readonly #window: number
  #unpaid = 0

  constructor(request: PredictRequest, requestId: string, alone: boolean) {
    this.id = request.id
    this.requestId = requestId
    this.headers = request.headers
    this.parts = request.parts
    this.alone = alone
    this.#window = request.window
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

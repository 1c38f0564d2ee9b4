import { encodePredict } from './otf/encode.ts'
import type { OpenRequest } from './open-request.ts'

/** How requests get to the handler. */
export interface Delivery {
  add(requests: readonly OpenRequest[]): void
  /** Nobody waits for it any more. */
  cancelled(request: OpenRequest): void
  /** The handler has ended it. */
  ended(request: OpenRequest): void
  /** A whole reply has come. */
  replied(): void
  /** Whether the readers of all requests are too slow for the handler, so that it has to wait. */
  hold(held: boolean): void
}

/** What a delivery needs. */
export interface DeliveryLink {
  /** To every rank that gets requests. */
  write(frame: Buffer): void
  /** Whether the worker's answers are read. */
  listen(on: boolean): void
  /** The request ends without a further answer of the handler. */
  drop(request: OpenRequest): void
}

/** Every batch is sent once, as it comes. Whether the worker runs them one by one or side by side is its own affair. */
export class BatchDelivery implements Delivery {
  readonly #link: DeliveryLink

  constructor(link: DeliveryLink) {
    this.#link = link
  }

  add(requests: readonly OpenRequest[]): void {
    this.#link.write(encodePredict(requests))
    for (const request of requests) request.sent()
  }

  cancelled(): void {
    // The worker cannot be told; what it still sends is thrown away.
  }

  ended(): void {
    // Nothing is kept here.
  }

  replied(): void {
    // Nothing waits for it.
  }

  /** The socket's buffers fill, and the handler's send waits. */
  hold(held: boolean): void {
    this.#link.listen(!held)
  }
}

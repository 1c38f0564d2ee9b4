import { encodePredict } from './otf/encode.ts'
import type { OpenRequest } from './open-request.ts'

/** How requests reach the handler. */
export interface Delivery {
  add(requests: readonly OpenRequest[]): void
  /** The request was cancelled. */
  cancelled(request: OpenRequest): void
  /** The handler has ended the request. */
  ended(request: OpenRequest): void
  /** A complete reply has arrived. */
  replied(): void
  /** Whether the readers of all requests are too slow, so that the handler has to wait. */
  hold(held: boolean): void
}

/** What a delivery needs. */
export interface DeliveryLink {
  /** Writes to every rank that gets requests. */
  write(frame: Buffer): void
  /** Whether the worker's replies are read. */
  listen(on: boolean): void
  /** Ends the request without a further response of the handler. */
  drop(request: OpenRequest): void
}

/**
 * Sends every batch once, when it arrives. The worker decides whether it runs batches one by one or in
 * parallel.
 */
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
    // The worker cannot be told; its remaining responses are dropped.
  }

  ended(): void {
    // Nothing is kept here.
  }

  replied(): void {
    // Nothing waits for it.
  }

  /** The socket's buffers fill up, so the handler's send blocks. */
  hold(held: boolean): void {
    this.#link.listen(!held)
  }
}

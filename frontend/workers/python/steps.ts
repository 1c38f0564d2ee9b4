import { encodePredict } from './otf/encode.ts'
import type { Delivery, DeliveryLink } from './delivery.ts'
import type { OpenRequest } from './open-request.ts'

/**
 * Continuous batching for TorchServe's worker: one message per step, with all requests that have not ended. A
 * request's input is sent only in its first step. New requests join at the next step. A cancelled request is
 * absent from the next message, which tells the handler.
 */
export class StepDelivery implements Delivery {
  readonly #link: DeliveryLink
  #waiting: OpenRequest[] = []
  /** In the order in which they joined. */
  readonly #running = new Set<OpenRequest>()
  #stepping = false
  #held = false
  #woken = false

  constructor(link: DeliveryLink) {
    this.#link = link
  }

  add(requests: readonly OpenRequest[]): void {
    this.#waiting.push(...requests)
    this.#wake()
  }

  cancelled(request: OpenRequest): void {
    if (!this.#running.has(request)) {
      this.#waiting = this.#waiting.filter((waiting) => waiting !== request)
      this.#link.drop(request)
    }
    this.#wake()
  }

  ended(request: OpenRequest): void {
    this.#running.delete(request)
  }

  replied(): void {
    this.#stepping = false
    this.#step()
  }

  hold(held: boolean): void {
    this.#held = held
    this.#wake()
  }

  /** Requests that arrive in one turn of the event loop share the step. */
  #wake(): void {
    if (this.#stepping || this.#woken) return
    this.#woken = true
    setImmediate(() => {
      this.#woken = false
      this.#step()
    })
  }

  #step(): void {
    if (this.#stepping) return
    this.#leave()
    this.#join()
    if (this.#held || this.#running.size === 0) return
    this.#stepping = true
    const members = [...this.#running]
    this.#link.write(encodePredict(members))
    for (const member of members) member.sent()
  }

  #leave(): void {
    for (const request of this.#running) {
      if (!request.cancelled) continue
      this.#running.delete(request)
      this.#link.drop(request)
    }
  }

  /**
   * Requests start in order. One that cannot share a step with the running ones waits until none runs, and
   * later ones wait for it.
   */
  #join(): void {
    let [first] = this.#running
    let joined = 0
    for (const request of this.#waiting) {
      if (first?.sharesWith(request) === false) break
      first ??= request
      this.#running.add(request)
      joined += 1
    }
    if (joined > 0) this.#waiting = this.#waiting.slice(joined)
  }
}

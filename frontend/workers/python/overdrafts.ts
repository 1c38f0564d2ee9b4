import type { OpenRequest } from './open-request.ts'

/** The requests of one worker whose clients have not read more than a window. */
export class Overdrafts {
  readonly #requests = new Set<OpenRequest>()
  #bytes = 0

  /** The number of these requests. */
  get size(): number {
    return this.#requests.size
  }

  /** Bytes beyond the windows, of all requests together. */
  get bytes(): number {
    return this.#bytes
  }

  /** An item arrived. Returns whether the request is beyond its window. */
  took(request: OpenRequest, bytes: number): boolean {
    this.#bytes -= request.overdraft
    request.took(bytes)
    this.#bytes += request.overdraft
    if (request.overdraft === 0) return false
    this.#requests.add(request)
    return true
  }

  /** The client read some bytes. Returns whether the request is no longer beyond its window. */
  paid(request: OpenRequest, bytes: number): boolean {
    const counted = this.#requests.has(request)
    const before = request.overdraft
    request.paid(bytes)
    if (!counted) return false
    this.#bytes -= before - request.overdraft
    return request.overdraft === 0 && this.#requests.delete(request)
  }

  /** The request has ended or was cancelled, and its backlog is gone. */
  forget(request: OpenRequest): void {
    if (this.#requests.delete(request)) this.#bytes -= request.overdraft
  }

  /** The request that is most beyond its window. */
  largest(): OpenRequest | undefined {
    let largest: OpenRequest | undefined
    for (const request of this.#requests)
      if (largest === undefined || request.overdraft > largest.overdraft) largest = request
    return largest
  }
}

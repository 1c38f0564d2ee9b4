/** One burst of load on one target. */
export interface Load {
  /** Bytes of the request's body; for gRPC one length-prefixed message. */
  body: Buffer
  /** Whole URL. */
  url: string
  /** Connections, each with one request under way. */
  clients: number
  seconds: number
}

/** What came of it. */
export interface LoadResult {
  /** Requests answered in full. */
  requests: number
  /** Answers that were no success, and broken connections. */
  errors: number
  seconds: number
  /** Milliseconds, where the generator says it. */
  p50?: number
  p99?: number
}

/** A load generator; it always runs in a process of its own. */
export interface Generator {
  name: string
  run(load: Load): Promise<LoadResult>
}

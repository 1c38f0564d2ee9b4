/** One burst of load on one target. */
export interface Load {
  /** Bytes of the request's body; for gRPC one length-prefixed message. */
  body: Buffer
  /** Full URL. */
  url: string
  /** REST: headers besides the content type, which is bytes unless they say another. */
  headers: Readonly<Record<string, string>>
  /** Number of connections, each with one open request. */
  clients: number
  seconds: number
}

/** Result of one burst. */
export interface LoadResult {
  /** Complete answers. */
  requests: number
  /** Unsuccessful answers and broken connections. */
  errors: number
  seconds: number
  /** Bytes of all answers, also of those that were not complete at the end; gRPC: of messages. */
  bytes?: number
  /** Milliseconds, if the generator reports it. */
  p50?: number
  p99?: number
}

/** A load generator; always runs in its own process. */
export interface Generator {
  name: string
  run(load: Load): Promise<LoadResult>
}

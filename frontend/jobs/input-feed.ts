/** Takes the further inputs of one request to its worker. */
export interface InputPort {
  /** `data` undefined: none follows, the last one came before. */
  input(data: Uint8Array | undefined): void
}

/** The further inputs of a request whose client sends several; it waits with them for the worker. */
export interface InputFeed {
  /** A worker has the request. */
  connect(port: InputPort): void
  /** The handler has asked for this many of them. */
  taken(inputs: number): void
}

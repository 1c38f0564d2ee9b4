/** Sends the further inputs of one request to its worker. */
export interface InputPort {
  /** `data` undefined: no further input follows. */
  input(data: Uint8Array | undefined): void
}

/**
 * The further inputs of a request whose client sends several. They wait here until a worker has the request.
 */
export interface InputFeed {
  /** A worker has the request. */
  connect(port: InputPort): void
  /** The handler has asked for this many inputs. */
  taken(inputs: number): void
  /** Whether the handler waits for an input that the client has not sent. */
  readonly waitsForClient: boolean
}

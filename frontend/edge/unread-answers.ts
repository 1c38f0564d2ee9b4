/**
 * Bounds the bytes of answers that wait for their clients to read them, over all connections of the server.
 * Beyond the limit the connection that has most is closed: whoever reads has few, and goes on.
 */
export class UnreadAnswers {
  readonly #limit: number
  readonly #connections = new Set<UnreadOfConnection>()
  #bytes = 0

  /** @param limit bytes; more than any one answer has */
  constructor(limit: number) {
    this.#limit = limit
  }

  get bytes(): number {
    return this.#bytes
  }

  /** A connection; `cut` closes it, whatever waits. */
  open(cut: () => void): UnreadOfConnection {
    const connection = new UnreadOfConnection(this, cut)
    this.#connections.add(connection)
    return connection
  }

  changed(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#limit) this.#mostOf()?.cut()
  }

  closed(connection: UnreadOfConnection): void {
    this.#connections.delete(connection)
    this.#bytes -= connection.bytes
  }

  #mostOf(): UnreadOfConnection | undefined {
    let most: UnreadOfConnection | undefined
    for (const each of this.#connections) if (each.bytes > (most?.bytes ?? 0)) most = each
    return most
  }
}

/** Those of one connection. */
export class UnreadOfConnection {
  readonly #all: UnreadAnswers
  readonly #cut: () => void
  #bytes = 0
  #isClosed = false

  constructor(all: UnreadAnswers, cut: () => void) {
    this.#all = all
    this.#cut = cut
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @param bytes below 0: the client has read them */
  add(bytes: number): void {
    if (this.#isClosed) return
    this.#bytes += bytes
    this.#all.changed(bytes)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#all.closed(this)
  }

  cut(): void {
    this.close()
    this.#cut()
  }
}

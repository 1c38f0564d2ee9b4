import { groupOf } from '../../common/address-group.ts'

/**
 * Bounds the bytes of answers that wait for their clients to read them, over all connections of the server.
 * Beyond the limit, of the address that has most (IPv6: of the /64 network) the connection that has most is
 * closed: whoever reads goes on, however many connections others have.
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

  /**
   * A connection; `cut` closes it, whatever waits.
   * @param address undefined: a Unix socket
   */
  open(address: string | undefined, cut: () => void): UnreadOfConnection {
    const connection = new UnreadOfConnection(this, address === undefined ? '' : groupOf(address), cut)
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
    const byGroup = new Map<string, number>()
    for (const { group, bytes } of this.#connections) byGroup.set(group, (byGroup.get(group) ?? 0) + bytes)
    let most: UnreadOfConnection | undefined
    for (const each of this.#connections) {
      const more = most === undefined ? 1 : byGroup.get(each.group)! - byGroup.get(most.group)!
      if (more > 0 || (more === 0 && each.bytes > most!.bytes)) most = each
    }
    return most
  }
}

/** Those of one connection. */
export class UnreadOfConnection {
  /** Of its address. */
  readonly group: string
  readonly #all: UnreadAnswers
  readonly #cut: () => void
  #bytes = 0
  #isClosed = false

  constructor(all: UnreadAnswers, group: string, cut: () => void) {
    this.#all = all
    this.group = group
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

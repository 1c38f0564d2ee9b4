import { groupOf } from '../../common/address-group.ts'

/** Milliseconds after which bytes that nobody reads weigh as much as they can. */
const GROWN_MS = 5_000

/**
 * Bounds the bytes of answers that wait for their clients to read them, over all connections of the server.
 * Beyond the limit, of the address that has most (IPv6: of the /64 network) the connection that has most is
 * closed: whoever reads goes on, however many connections others have. An answer waits as soon as it is
 * written, also for a client that reads at once: bytes weigh less the shorter they have waited, or others
 * who leave a little less each could have such a client closed.
 */
export class UnreadAnswers {
  readonly #limit: number
  readonly #connections = new Set<UnreadOfConnection>()
  readonly #now: () => number
  #bytes = 0

  /** @param limit bytes; more than any one answer has */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit
    this.#now = now
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

  get now(): number {
    return this.#now()
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
    const now = this.#now()
    const byGroup = new Map<string, number>()
    for (const each of this.#connections)
      byGroup.set(each.group, (byGroup.get(each.group) ?? 0) + each.weight(now))
    let most: UnreadOfConnection | undefined
    for (const each of this.#connections) {
      const more = most === undefined ? 1 : byGroup.get(each.group)! - byGroup.get(most.group)!
      if (more > 0 || (more === 0 && each.weight(now) > most!.weight(now))) most = each
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
  /** When its first byte began to wait. */
  #since = 0
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
    if (this.#bytes === 0) this.#since = this.#all.now
    this.#bytes += bytes
    this.#all.changed(bytes)
  }

  /** Its bytes, as far as they have waited long. */
  weight(now: number): number {
    return this.#bytes * Math.min(1, (now - this.#since + 1) / GROWN_MS)
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

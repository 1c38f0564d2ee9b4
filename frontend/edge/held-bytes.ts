import { groupOf } from '../../common/address-group.ts'

/** Milliseconds after which bytes weigh as much as they can. */
const GROWN_MS = 5_000

/**
 * Bounds the bytes that the server holds for its clients, over all connections: answers that they have not
 * read, or bodies that they have not sent to the end. Beyond the limit, of the address that has most (IPv6:
 * of the /64 network) the connection that has most is cut: whoever goes on is left alone, however many
 * connections others have. Bytes are held for a moment also for a client that is quick: they weigh less the
 * shorter they have waited, or others who hold a little less each could have such a client cut. Of an
 * address half of its bytes count whatever their age, or a burst of one could have those of another cut who
 * hold a fraction of it for long.
 */
export class HeldBytes {
  readonly #limit: number
  readonly #connections = new Set<HeldByConnection>()
  readonly #now: () => number
  #bytes = 0

  /** @param limit bytes; more than any one answer or body has */
  constructor(limit: number, now: () => number = () => performance.now()) {
    this.#limit = limit
    this.#now = now
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * A connection; `cut` frees what is held for it.
   * @param address undefined: a Unix socket
   */
  open(address: string | undefined, cut: () => void): HeldByConnection {
    const connection = new HeldByConnection(this, address === undefined ? '' : groupOf(address), cut)
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

  closed(connection: HeldByConnection): void {
    this.#connections.delete(connection)
    this.#bytes -= connection.bytes
  }

  #mostOf(): HeldByConnection | undefined {
    const now = this.#now()
    const byGroup = new Map<string, number>()
    for (const each of this.#connections)
      byGroup.set(each.group, (byGroup.get(each.group) ?? 0) + (each.bytes + each.weight(now)) / 2)
    let most: HeldByConnection | undefined
    for (const each of this.#connections) {
      const more = most === undefined ? 1 : byGroup.get(each.group)! - byGroup.get(most.group)!
      if (more > 0 || (more === 0 && each.weight(now) > most!.weight(now))) most = each
    }
    return most
  }
}

/** What is held for one connection. */
export class HeldByConnection {
  /** Of its address. */
  readonly group: string
  readonly #all: HeldBytes
  readonly #cut: () => void
  #bytes = 0
  /** When its first byte began to wait. */
  #since = 0
  #isClosed = false

  constructor(all: HeldBytes, group: string, cut: () => void) {
    this.#all = all
    this.group = group
    this.#cut = cut
  }

  get bytes(): number {
    return this.#bytes
  }

  /** @param bytes below 0: they are held no more */
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

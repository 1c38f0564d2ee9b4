import type { Server, Socket } from 'node:net'
import { groupOf } from '../../common/address-group.ts'
import { remember } from '../../common/remember.ts'
import { startTimer } from '../../common/timer.ts'
import { RateBucket } from '../auth/rate-bucket.ts'

/** Connections that wait together: Node reads up to 64 KB of each meanwhile. */
const MAX_WAITING = 512
/** Addresses that are remembered; the one that came last longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000

interface Waiting {
  readonly server: Pick<Server, 'listening'>
  readonly socket: Socket
  readonly enter: () => void
}

/** What one address opens. */
interface Arrivals {
  readonly bucket: RateBucket
  readonly waiting: Waiting[]
}

/**
 * Lets each address (IPv6: each /64 network) open so many connections per second, one second's worth at once.
 * Those that come faster wait in their order, and are refused only when too many wait. Unix sockets have no
 * address and never wait. Its memory is bounded.
 */
export class ArrivalPace {
  readonly #perSecond: number
  readonly #now: () => number
  readonly #byAddress = new Map<string, Arrivals>()
  #waiting = 0

  /** `perSecond`: 0 lets everything in at once. `now`: milliseconds of a clock that never goes back. */
  constructor(perSecond: number, now: () => number = () => performance.now()) {
    this.#perSecond = perSecond
    this.#now = now
  }

  /** Connections that wait now. */
  get waiting(): number {
    return this.#waiting
  }

  /**
   * Calls `enter` at once, or when its turn comes. When the server listens no more, those that still wait are
   * closed. `full`: it may not wait.
   */
  arrive(server: Pick<Server, 'listening'>, socket: Socket, enter: () => void): 'entered' | 'waits' | 'full' {
    const { remoteAddress } = socket
    if (this.#perSecond === 0 || remoteAddress === undefined) {
      enter()
      return 'entered'
    }
    const arrivals = this.#arrivalsOf(groupOf(remoteAddress))
    const now = this.#now()
    if (arrivals.waiting.length === 0 && arrivals.bucket.level(now) >= 1) {
      arrivals.bucket.spend(1, now)
      enter()
      return 'entered'
    }
    if (this.#waiting >= MAX_WAITING) return 'full'
    this.#waiting += 1
    socket.on('error', ignore)
    if (arrivals.waiting.push({ server, socket, enter }) === 1) this.#wake(arrivals)
    return 'waits'
  }

  #wake(arrivals: Arrivals): void {
    const ms = Math.ceil(arrivals.bucket.wait(1, this.#now()))
    startTimer(() => this.#admit(arrivals), ms).unref()
  }

  /** Lets in as many as may come now. Those that left meanwhile cost nothing. */
  #admit(arrivals: Arrivals): void {
    const { bucket, waiting } = arrivals
    const now = this.#now()
    while (waiting.length > 0 && (isOver(waiting[0]!) || bucket.level(now) >= 1)) {
      const next = waiting.shift()!
      const { socket, enter } = next
      this.#waiting -= 1
      if (isOver(next)) {
        socket.destroy()
        continue
      }
      bucket.spend(1, now)
      socket.off('error', ignore)
      enter()
    }
    if (waiting.length > 0) this.#wake(arrivals)
  }

  /** They are the newest now. */
  #arrivalsOf(address: string): Arrivals {
    const arrivals = this.#byAddress.get(address) ?? {
      bucket: new RateBucket(this.#perSecond, this.#now()),
      waiting: [],
    }
    remember(this.#byAddress, MAX_ADDRESSES, address, arrivals)
    return arrivals
  }
}

/** It would only be in the way of the others. */
function isOver({ server, socket }: Waiting): boolean {
  return socket.destroyed || !server.listening
}

function ignore(): void {
  // A client that leaves is no error.
}

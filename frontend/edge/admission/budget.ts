import { groupOf } from '../../../common/addresses.ts'

/** Why a lease gets no more: the budget is used up, or its address has half of it. */
type Shortage = 'all' | 'address'

/** What the leases of one address hold together. */
interface Share {
  held: number
  leases: number
}

/**
 * Places or bytes that clients share. One client address (IPv6: one /64 network) has at most half of them:
 * the newest request for more is refused. Unix sockets have no address.
 */
export class Budget {
  readonly limit: number
  /** What one address may hold. */
  readonly perAddress: number
  readonly #shares = new Map<string, Share>()
  #held = 0

  constructor(limit: number) {
    this.limit = limit
    this.perAddress = Math.ceil(limit / 2)
  }

  /** What all leases hold together. */
  get held(): number {
    return this.#held
  }

  /** A lease that holds nothing yet; `address`: undefined for a Unix socket. */
  lease(address: string | undefined): Lease {
    if (address === undefined) return new Lease(this, undefined, () => undefined)
    const group = groupOf(address)
    const share = this.#shares.get(group) ?? { held: 0, leases: 0 }
    share.leases += 1
    this.#shares.set(group, share)
    return new Lease(this, share, () => {
      share.leases -= 1
      if (share.leases === 0) this.#shares.delete(group)
    })
  }

  /** For a lease: adds to what is held, or says what is short; below 0 is always possible. */
  add(share: Share | undefined, amount: number): Shortage | undefined {
    if (amount > 0) {
      if (this.#held + amount > this.limit) return 'all'
      if (share !== undefined && share.held + amount > this.perAddress) return 'address'
    }
    this.#held += amount
    if (share !== undefined) share.held += amount
    return undefined
  }
}

/** What one client holds of a budget, for as long as it needs it: until `close`. */
export class Lease {
  /** The most that it may hold. */
  limit = Infinity
  readonly #budget: Budget
  readonly #share: Share | undefined
  readonly #closed: () => void
  #held = 0
  #isOpen = true

  constructor(budget: Budget, share: Share | undefined, closed: () => void) {
    this.#budget = budget
    this.#share = share
    this.#closed = closed
  }

  get held(): number {
    return this.#held
  }

  /** Takes more. Otherwise says what is short, and takes nothing. */
  take(amount: number): Shortage | undefined {
    if (!this.#isOpen) return undefined
    if (this.#held + amount > this.limit) return 'address'
    const short = this.#budget.add(this.#share, amount)
    if (short === undefined) this.#held += amount
    return short
  }

  give(amount: number): void {
    if (!this.#isOpen) return
    this.#held -= amount
    this.#budget.add(this.#share, -amount)
  }

  /** Gives everything back; the lease counts nothing from then on. */
  close(): void {
    if (!this.#isOpen) return
    this.give(this.#held)
    this.#isOpen = false
    this.#closed()
  }
}

/** What an item costs besides its body, so that many tiny items are bounded too. */
const ITEM_OVERHEAD_BYTES = 64

/** What one item of a response costs its request's window. */
export function itemCost(bodyBytes: number): number {
  return bodyBytes + ITEM_OVERHEAD_BYTES
}

/**
 * The credit of one stream of items. The sender and the receiver each count it: an item consumes credit, and
 * the receiver grants as much again when it has passed the item on. The last item before the credit is used
 * up may overdraw it, so that an item larger than the window passes.
 */
export class CreditStream {
  #left: number
  readonly #window: number
  readonly #checked: boolean
  #closed = false
  #ready: Promise<void> | undefined
  #wake: (() => void) | undefined

  /**
   * @param window what the sender may send before it is granted anything
   * @param checked false: the sender knows no credit, so nothing that it sends is a breach. Default true
   */
  constructor(window: number, checked = true) {
    this.#left = this.#window = window
    this.#checked = checked
  }

  /** Whether an item may be sent. */
  get open(): boolean {
    return this.#left > 0
  }

  /** What was consumed and not granted again. */
  get used(): number {
    return this.#window - this.#left
  }

  /** Counts an item. Returns false, and does not count it, if there is no credit for it. */
  consume(size: number): boolean {
    if (this.#left <= 0 && this.#checked) return false
    this.#left -= itemCost(size)
    return true
  }

  grant(credit: number): void {
    this.#left += credit
    this.#wakeUp()
  }

  /** Nothing more is sent: who waits goes on. */
  close(): void {
    this.#closed = true
    this.#wakeUp()
  }

  /** Resolves when there is credit or the stream is closed; waiters resume in order. */
  ready(): Promise<void> {
    return this.open || this.#closed ? Promise.resolve() : (this.#ready ??= this.#opened())
  }

  async #opened(): Promise<void> {
    while (!this.open && !this.#closed) await new Promise<void>((resolve) => (this.#wake = resolve))
    this.#ready = undefined
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}

/** Progress of one run. */
export interface Produced {
  id: string
  state: 'unknown' | 'running' | 'finished' | 'cancelled' | 'failed'
  items: number
  bytes: number
  /** Milliseconds since the epoch, with fractions; absent until it happened. */
  startedAt?: number
  lastItemAt?: number
  endedAt?: number
  /** Milliseconds until now. */
  lastItemMsAgo?: number
  endedMsAgo?: number
}

/** Milliseconds since the epoch, with fractions, monotonic. */
function now(): number {
  return performance.timeOrigin + performance.now()
}

/** One run, with what it has produced so far. */
export class Run {
  /** Name from its client. */
  readonly id: string | undefined
  state: Exclude<Produced['state'], 'unknown'> = 'running'
  items = 0
  bytes = 0
  readonly startedAt = now()
  endedAt: number | undefined
  /** In performance.now() milliseconds, the cheapest clock. */
  #lastItem: number | undefined
  /** Items that were asked for and not made yet. */
  #wanted = 0
  #wake: (() => void) | undefined

  constructor(id: string | undefined) {
    this.id = id
  }

  made(bytes: number): void {
    this.items += 1
    this.bytes += bytes
    this.#lastItem = performance.now()
  }

  /** Asks for one item more. */
  want(): void {
    this.#wanted += 1
    this.#wake?.()
  }

  /** Waits until an item is asked for, at most until the signal aborts. */
  async wanted(signal: AbortSignal): Promise<void> {
    if (this.#wanted === 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        signal.addEventListener('abort', () => resolve(), { once: true })
      })
    }
    this.#wanted -= 1
  }

  /** Milliseconds since the epoch, with fractions. */
  get lastItemAt(): number | undefined {
    return this.#lastItem === undefined ? undefined : performance.timeOrigin + this.#lastItem
  }

  end(state: 'finished' | 'cancelled' | 'failed'): void {
    this.state = state
    this.endedAt = now()
  }
}

/** The named runs: all that are active, and the last thousand that ended. */
export class Runs {
  readonly #maxEnded: number
  readonly #running = new Map<string, Run>()
  readonly #ended = new Map<string, Run>()

  constructor(maxEnded = 1000) {
    this.#maxEnded = maxEnded
  }

  /** Replaces an earlier run of the same name. */
  start(id: string | undefined): Run {
    const run = new Run(id)
    if (id !== undefined) this.#running.set(id, run)
    return run
  }

  end(run: Run, state: 'finished' | 'cancelled' | 'failed'): void {
    const { id } = run
    run.end(state)
    if (id === undefined || this.#running.get(id) !== run) return
    this.#running.delete(id)
    this.#ended.delete(id)
    this.#ended.set(id, run)
    if (this.#ended.size <= this.#maxEnded) return
    const [oldest] = this.#ended.keys()
    this.#ended.delete(oldest!)
  }

  /** Asks a gated run for one item more; no other run minds. */
  want(id: string): void {
    this.#running.get(id)?.want()
  }

  produced(id: string): Produced {
    const run = this.#running.get(id) ?? this.#ended.get(id)
    if (run === undefined) return { id, state: 'unknown', items: 0, bytes: 0 }
    const { state, items, bytes, startedAt, lastItemAt, endedAt } = run
    const at = now()
    return {
      id,
      state,
      items,
      bytes,
      startedAt,
      lastItemAt,
      endedAt,
      lastItemMsAgo: lastItemAt === undefined ? undefined : at - lastItemAt,
      endedMsAgo: endedAt === undefined ? undefined : at - endedAt,
    }
  }
}

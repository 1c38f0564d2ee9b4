import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../support/random.ts'

/** Milliseconds. */
export interface Span {
  readonly least: number
  readonly most: number
}

/** Works that run beside a loop. What goes wrong with them is an error of the soak. */
export class Beside {
  readonly errors: string[] = []
  readonly #running = new Set<Promise<void>>()

  start(work: Promise<void>): void {
    const running = work.catch((error: unknown) => void this.errors.push(String(error)))
    this.#running.add(running)
    void running.finally(() => this.#running.delete(running))
  }

  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}

/** Acts again and again, after a time drawn from the span, until the signal aborts. */
export async function repeatedly(
  random: Random,
  { least, most }: Span,
  signal: AbortSignal,
  act: () => Promise<void> | void,
): Promise<void> {
  while (!signal.aborted) {
    await sleep(random.integer(least, most), undefined, { signal }).catch(() => undefined)
    if (!signal.aborted) await act()
  }
}

/** How often each kind of act took place. */
export class Counts<K extends string> extends Map<K, number> {
  add(kind: K, by = 1): void {
    this.set(kind, (this.get(kind) ?? 0) + by)
  }
}

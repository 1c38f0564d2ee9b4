import { executionAsyncResource } from 'node:async_hooks'

/** The longest delay of Node's timers: they count 31 bits of milliseconds, and fire after 1 ms beyond. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * setTimeout for a delay that is not a constant, such as a configured time.
 * @param ms one beyond `MAX_TIMER_MS` (24.8 days) counts as that, one below 0 as 0
 */
export function startTimer(action: () => void, ms: number): NodeJS.Timeout {
  // eslint-disable-next-line no-restricted-syntax -- the one place
  return setTimeout(action, Math.min(Math.max(ms, 0), MAX_TIMER_MS))
}

/** Waits for the work for at most `ms` milliseconds. Rejects if the work rejects within that time. */
export async function within(ms: number, work: unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<void>((resolve) => {
    timer = startTimer(resolve, ms)
  })
  try {
    await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}

const kept: object[] = []

/**
 * Keeps `process.nextTick` fast, which a request needs several times. Node makes an object for each tick, by
 * a literal with computed names. When V8 collects garbage while there is none of them, as in a process at
 * rest, it forgets their shape, and never again optimizes the literal for the next one: each tick takes ten
 * times as long from then on. One that stays alive, here that of a tick, keeps the shape.
 */
export function keepTicksFast(): void {
  process.nextTick(() => (kept[0] = executionAsyncResource()))
}

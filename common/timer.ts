/** The longest delay of Node's timers: they count 31 bits of milliseconds, and fire after 1 ms beyond. */
export const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * setTimeout for a delay that is not a constant, such as a configured time.
 * @param ms one beyond `MAX_TIMER_MS` (24.8 days) counts as that
 */
export function startTimer(action: () => void, ms: number): NodeJS.Timeout {
  // eslint-disable-next-line no-restricted-syntax -- the one place
  return setTimeout(action, Math.min(ms, MAX_TIMER_MS))
}

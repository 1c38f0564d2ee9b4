/**
 * Resolves when the signal aborts, or at once if it has, because a cancel may arrive while a handler waits
 * for something else.
 */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

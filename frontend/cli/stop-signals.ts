/** The signals that end a server. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

type StopSignal = keyof typeof SIGNALS

/**
 * Watches for signals that end a server. The first aborts `signal`, so that running requests finish; the
 * second calls `endNow` with the exit status.
 */
export function watchStopSignals(endNow: (status: number) => void): {
  signal: AbortSignal
  unwatch: () => void
} {
  const controller = new AbortController()
  const onSignal = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) endNow(128 + SIGNALS[name as StopSignal])
    else controller.abort(name)
  }
  for (const name of Object.keys(SIGNALS)) process.on(name, onSignal)
  const unwatch = (): void => {
    for (const name of Object.keys(SIGNALS)) process.off(name, onSignal)
  }
  return { signal: controller.signal, unwatch }
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

/** The signals that end a server. */
const SIGNALS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const

type StopSignal = keyof typeof SIGNALS

/**
 * Watches for signals that end a server. The first aborts `signal` with its name, so that running requests
 * finish; the second calls `endNow` with the exit status.
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

/**
 * The exit status of a server that ended as asked. A terminal that was closed sends SIGHUP: a supervisor that
 * restarts after failures has to start the server again.
 */
export function statusAfter(signal: AbortSignal): number {
  return signal.reason === 'SIGHUP' ? 128 + SIGNALS.SIGHUP : 0
}

/**
 * Watches for the other signals that operators send: SIGUSR1 calls `reopenLogs` instead of opening Node's
 * inspector, and SIGUSR2 does nothing instead of ending the process.
 * @returns what ends the watch
 */
export function watchUserSignals(reopenLogs: () => void): () => void {
  const nothing = (): void => undefined
  process.on('SIGUSR1', reopenLogs).on('SIGUSR2', nothing)
  return () => process.off('SIGUSR1', reopenLogs).off('SIGUSR2', nothing)
}

/** Resolves when the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

/** Waits until the test has opened the gate of this path (tests/support/gate.ts), or the signal aborts. */
export async function opened(path: string, signal?: AbortSignal): Promise<void> {
  while (!existsSync(path) && signal?.aborted !== true) await wait(5)
}

import { existsSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

/** Waits until the test has opened the gate of this path (tests/support/gate.ts). */
export async function opened(path: string): Promise<void> {
  while (!existsSync(path)) await wait(5)
}

import { expect } from '@jest/globals'
import type { Produced } from './count.ts'
import type { Server } from './server.ts'
import { inOneTry } from './tries.ts'

/** What the contract allows between a client's leaving and the handler's stop, in milliseconds. */
const LIMIT_MS = 100

/**
 * Starts a run of the count model, leaves it, and looks at it: it must be cancelled, make nothing after its end, and have ended within the limit.
 * @param produced asks how far a run is
 * @param leave gets the run's name and how patient its client has to be this time, from 1; returns when its client left
 */
export async function stopsInTime(
  server: Server,
  produced: (id: string) => Promise<Produced>,
  leave: (id: string, patience: number) => Promise<number>,
): Promise<void> {
  await inOneTry(async (k) => {
    const id = `${expect.getState().currentTestName} ${k}`
    const left = await leave(id, k)
    const run = await server.until(
      () => produced(id),
      ({ state }) => state !== 'running',
    )
    if (run.state === 'unknown') return 'The client left before the run began'
    expect(run.state).toBe('cancelled')
    expect(run.lastItemAt ?? 0).toBeLessThanOrEqual(run.endedAt!)
    expect((await produced(id)).items).toBe(run.items)
    return run.endedAt! - left < LIMIT_MS ? undefined : run.endedAt! - left
  })
}

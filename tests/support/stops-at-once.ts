import { expect } from '@jest/globals'
import type { Produced } from './count.ts'

/** Clients that disconnect one after the other, so that a server that is late for some of them fails. */
const CLIENTS = 6
/**
 * Everything that the frontend received before the first of these requests has reached the handler before the
 * last is answered.
 */
const ROUND_TRIPS = 3

/** The progress of a run of the count model. */
export type Look = (id: string) => Promise<Produced>

/**
 * Starts runs of the count model and leaves them. Each is cancelled within a few round trips and makes no
 * further item.
 * @param leave gets the run's name; it begins the run and returns when the server's kernel has seen the
 * client disconnect
 */
export async function stopsAtOnce(look: Look, leave: (id: string) => Promise<void>): Promise<void> {
  for (let k = 1; k <= CLIENTS; k += 1) {
    const id = `${expect.getState().currentTestName} ${k}`
    await leave(id)
    await expectStopped(look, [id])
  }
}

/** The same for many at once. @param leaveAll gets their names; it returns when all have left */
export async function allStopAtOnce(look: Look, leaveAll: (ids: string[]) => Promise<void>): Promise<void> {
  const ids = Array.from({ length: CLIENTS }, (_, k) => `${expect.getState().currentTestName} ${k}`)
  await leaveAll(ids)
  await expectStopped(look, ids)
}

async function expectStopped(look: Look, ids: string[]): Promise<void> {
  for (let k = 1; k < ROUND_TRIPS; k += 1) await look(ids[0]!)
  for (const id of ids) {
    const run = await look(id)
    expect(run).toMatchObject({ id, state: 'cancelled' })
    expect(run.lastItemAt ?? 0).toBeLessThanOrEqual(run.endedAt!)
    expect((await look(id)).items).toBe(run.items)
  }
}

import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from '@jest/globals'
import type { Asked } from '../contract/dialect.ts'
import { ALL_DIALECTS, CASES, type PortDialect } from '../support/dialects.ts'
import { PACED, pacedModels, said } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'

const ITEMS = 5
const GAP_MS = 120
/** On a machine that others use too: what is held back until the end fails all of them. */
const TRIES = 3

let server: Server

beforeAll(async () => {
  // Two workers with one slot each: two streams at once need both.
  server = await startServer({
    models: pacedModels({ minWorkers: 2, maxWorkers: 2, maxConcurrency: 1 }),
    config: ALL_DIALECTS,
  })
  await Promise.all(PACED.map((model) => server.ready(model)))
})

const onEpoch = (at: number): number => performance.timeOrigin + at

/** Whether every item came before the next was made. */
async function oneByOne(dialect: PortDialect, model: string): Promise<boolean> {
  const id = randomUUID()
  const client = dialect.at(server.ports[dialect.port])
  const { items, end, headers }: Asked = await client.ask(
    model,
    JSON.stringify({ id, n: ITEMS, gap: GAP_MS }),
  )
  client.close()
  expect(items.map(({ text }) => text.trim())).toEqual(['1', '2', '3', '4', '5'])
  expect(end.kind).toBe('finished')
  expect(headers?.['content-encoding']).toBeUndefined()
  const made = await Promise.all(items.map((_, k) => said(server, `made-${k + 1}`, id)))
  return items.every(({ at }, k) => k === ITEMS - 1 || onEpoch(at) < made[k + 1]!)
}

async function inOneTry(both: () => Promise<boolean[]>): Promise<boolean> {
  for (let k = 0; k < TRIES; k += 1) if ((await both()).every((held) => held)) return true
  return false
}

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)

test.each(STREAMS)(
  'with two workers and gzip asked for, each item is read before the next is made: %s, %s',
  async (_name, model, dialect) => {
    const both = () => Promise.all([oneByOne(dialect, model), oneByOne(dialect, model)])
    expect(await inOneTry(both)).toBe(true)
  },
)

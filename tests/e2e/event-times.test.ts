import { beforeAll, expect, test } from '@jest/globals'
import { ALL_DIALECTS, ask, CASES, type PortDialect } from '../support/dialects.ts'
import { PACED, pacedModels, said } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'
import { inOneTry } from '../support/tries.ts'

const ITEMS = 5
const GAP_MS = 120

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
  const { id, items, end, headers } = await ask(server, dialect, model, { n: ITEMS, gap: GAP_MS })
  expect(items.map(({ text }) => text.trim())).toEqual(['1', '2', '3', '4', '5'])
  expect(end.kind).toBe('finished')
  expect(headers?.['content-encoding']).toBeUndefined()
  const made = await Promise.all(items.map((_, k) => said(server, `made-${k + 1}`, id)))
  return items.every(({ at }, k) => k === ITEMS - 1 || onEpoch(at) < made[k + 1]!)
}

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)

test.each(STREAMS)(
  'with two workers and gzip asked for, each item is read before the next is made: %s, %s',
  (_name, model, dialect) =>
    inOneTry(async () => {
      const both = await Promise.all([oneByOne(dialect, model), oneByOne(dialect, model)])
      return both.every((held) => held) ? undefined : both
    }),
)

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { ALL_DIALECTS, ask, CASES, type PortDialect } from '../support/dialects.ts'
import { PACED, pacedModels } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const ITEMS = 5
/** Milliseconds; a later item was not sent before the next one was made. */
const LIMIT_MS = 15_000

let server: Server

beforeAll(async () => {
  // Two workers with one slot each: two streams at once need both.
  server = await startServer({
    models: pacedModels({ minWorkers: 2, maxWorkers: 2, maxConcurrency: 1 }),
    config: ALL_DIALECTS,
  })
  await Promise.all(PACED.map((model) => server.ready(model)))
})

/** Two streams; item k + 1 of both is made when item k of both has been read. */
async function inStep(dialect: PortDialect, model: string): Promise<void> {
  const gates = join(tempDir(), 'item')
  const seen = Array.from({ length: ITEMS + 1 }, () => 0)
  const onItem = (count: number): void => {
    seen[count]! += 1
    if (seen[count] === 2) writeFileSync(`${gates}.${count}`, '')
  }
  const plan = { n: ITEMS, gates }
  const one = () => ask(server, dialect, model, plan, { onItem, leaveAfterMs: LIMIT_MS })
  for (const { items, end, headers } of await Promise.all([one(), one()])) {
    expect(items.map(({ text }) => text.trim())).toEqual(['1', '2', '3', '4', '5'])
    expect(end.kind).toBe('finished')
    expect(headers?.['content-encoding']).toBeUndefined()
  }
}

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)

test.each(STREAMS)(
  'with two workers and gzip asked for, each item is read before the next is made: %s, %s',
  (_name, model, dialect) => inStep(dialect, model),
)

async function whileItComputes(dialect: PortDialect, model: string, burst: number): Promise<void> {
  const gates = join(tempDir(), 'item')
  const onItem = (count: number): void => writeFileSync(`${gates}.${count}`, '')
  const plan = { n: ITEMS, gates, busy: true, burst }
  const { items, end } = await ask(server, dialect, model, plan, { onItem, leaveAfterMs: LIMIT_MS })
  expect([items.length, end.kind]).toEqual([ITEMS, 'finished'])
}

test.each(STREAMS)(
  'an item leaves a handler that computes until its client has it: %s, %s',
  (_name, model, dialect) => whileItComputes(dialect, model, 1),
)

test.each(STREAMS)(
  'items that a handler sends together leave before it computes on: %s, %s',
  (_name, model, dialect) => whileItComputes(dialect, model, ITEMS - 1),
)

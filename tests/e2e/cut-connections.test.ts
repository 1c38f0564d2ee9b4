import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { AskOptions } from '../contract/dialect.ts'
import { Cable } from '../support/cable.ts'
import { ALL_DIALECTS, CASES, DIALECTS, type PortDialect } from '../support/dialects.ts'
import { expectUnbegun, PACED, pacedModels, said } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'

/** What the contract allows between the cut of a connection and the abort of the handler's signal. */
const LIMIT_MS = 100
/** On a machine that others use too a try may be slow; a server that only looks now and then is hardly ever in time twice. */
const IN_TIME = 2
const TRIES = 8

let server: Server

beforeAll(async () => {
  const config = { minWorkers: 1, maxWorkers: 1, asyncCommunication: true, maxConcurrency: 10 }
  server = await startServer({
    models: [...pacedModels(config), ...pacedModels({ ...config, maxConcurrency: 1 }, '-single')],
    config: ALL_DIALECTS,
  })
  await Promise.all(PACED.flatMap((model) => [server.ready(model), server.ready(`${model}-single`)]))
})

/** A client on a connection of its own. */
class Caller {
  readonly id = randomUUID()
  readonly #cable: Cable
  readonly #gone: Promise<unknown>

  constructor(dialect: PortDialect, cable: Cable, model: string, plan: object, options?: AskOptions) {
    this.#cable = cable
    const client = dialect.at(cable.port)
    const asked = client.ask(model, JSON.stringify({ id: this.id, ...plan }), options)
    this.#gone = asked.catch(() => undefined).finally(() => client.close())
  }

  /** Milliseconds since the epoch; may be called again. */
  cut(): number {
    return this.#cable.cut()
  }

  async gone(): Promise<void> {
    this.cut()
    await this.#gone
  }
}

async function callerOf(
  dialect: PortDialect,
  model: string,
  plan: object,
  options?: AskOptions,
): Promise<Caller> {
  return new Caller(dialect, await Cable.to(server.ports[dialect.port]), model, plan, options)
}

/** Milliseconds from the cut to the abort of a run that has come as far as that `word`. */
async function cutAt(word: string, dialect: PortDialect, model: string, plan: object): Promise<number> {
  const stall = new AbortController()
  const options = word === 'stalled' ? { stallUntil: stall.signal } : {}
  const caller = await callerOf(dialect, model, plan, options)
  try {
    await said(server, word, caller.id)
    const at = caller.cut()
    return (await said(server, 'aborted', caller.id)) - at
  } finally {
    stall.abort()
    await caller.gone()
  }
}

async function expectInTime(cut: () => Promise<number>): Promise<void> {
  const times: number[] = []
  const inTime = (): number => times.filter((ms) => ms <= LIMIT_MS).length
  while (times.length < TRIES && inTime() < IN_TIME) times.push(await cut())
  expect([inTime(), times]).toEqual([IN_TIME, times])
}

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)

describe('a handler stops within 100 ms of the cut of its client’s connection', () => {
  test.each(CASES)('in a silence after its first item: %s, %s', (_name, model, dialect) =>
    expectInTime(() => cutAt('sent', dialect, model, { gap: 60_000 })),
  )

  test.each(CASES)('before its first item: %s, %s', (_name, model, dialect) =>
    expectInTime(() => cutAt('began', dialect, model, { first: 60_000 })),
  )

  test.each(STREAMS)('while it waits for a client that does not read: %s, %s', (_name, model, dialect) =>
    expectInTime(() => cutAt('stalled', dialect, model, { n: 10_000, pad: 65_536 })),
  )
})

test.each(PACED)('a request that still waits when its client is cut off never starts: %s', async (model) => {
  const name = `${model}-single`
  const dialects = DIALECTS.filter(({ models }) => models.includes(model))
  const pending = () => server.describe(name).then(([version]) => version!.jobQueueStatus.pendingRequests)
  const first = await callerOf(dialects[0]!, name, { gap: 60_000 })
  await said(server, 'sent', first.id)
  const queued = await Promise.all(dialects.map((dialect) => callerOf(dialect, name, {})))
  await server.until(pending, (count) => count === queued.length)
  await Promise.all(queued.map((caller) => caller.gone()))
  await server.until(pending, (count) => count === 0)
  await first.gone()
  const last = await callerOf(dialects[0]!, name, {})
  await said(server, 'sent', last.id)
  await last.gone()
  for (const { id } of queued) expectUnbegun(server, id)
})

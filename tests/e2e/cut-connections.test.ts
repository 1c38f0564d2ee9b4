import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { AskOptions } from '../contract/dialect.ts'
import { Cable } from '../support/cable.ts'
import { ALL_DIALECTS, ask, CASES, DIALECTS, type PortDialect } from '../support/dialects.ts'
import { expectUnbegun, PACED, pacedModels, said } from '../support/paced.ts'
import { startServer, type Server } from '../support/server.ts'

/** Clients that are cut off at the same time, so that a server that is late for some of them fails. */
const CLIENTS = 3
/**
 * Everything that the frontend received before the first of these runs has reached the worker before the last
 * begins.
 */
const RUNS_AFTER = 3

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

  /** May be called again. */
  cut(): void {
    this.#cable.cut()
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

/**
 * Cuts off clients whose runs have reached `word`: the handler's signals must abort before it begins later
 * runs.
 */
async function cutAt(word: string, dialect: PortDialect, model: string, plan: object): Promise<void> {
  const stall = new AbortController()
  const options = word === 'stalled' ? { stallUntil: stall.signal } : {}
  const callers = await Promise.all(
    Array.from({ length: CLIENTS }, () => callerOf(dialect, model, plan, options)),
  )
  try {
    await Promise.all(callers.map(({ id }) => said(server, word, id)))
    for (const caller of callers) caller.cut()
    const last = await runsAfter(model)
    await said(server, 'began', last)
    const lines = server.output.slice(0, placeOf('began', last))
    for (const { id } of callers)
      expect(lines.filter((line) => line.includes(`paced aborted ${id} `))).toHaveLength(1)
  } finally {
    stall.abort()
    await Promise.all(callers.map((caller) => caller.gone()))
  }
}

/** Runs that are asked for one after the other; the id of the last. */
async function runsAfter(model: string): Promise<string> {
  const dialect = DIALECTS.find(({ port, models }) => port === 'inference' && models.includes(model))!
  let last = ''
  for (let k = 1; k <= RUNS_AFTER; k += 1) last = (await ask(server, dialect, model, { n: 1 })).id
  return last
}

const placeOf = (word: string, id: string): number =>
  server.output.findIndex((line) => line.includes(`paced ${word} ${id} `))

const STREAMS = CASES.filter(([, , dialect]) => !dialect.whole)

describe('a handler’s signal aborts at the cut of its client’s connection, before later requests begin', () => {
  test.each(CASES)('in a silence after its first item: %s, %s', (_name, model, dialect) =>
    cutAt('sent', dialect, model, { gap: 60_000 }),
  )

  test.each(CASES)('before its first item: %s, %s', (_name, model, dialect) =>
    cutAt('began', dialect, model, { first: 60_000 }),
  )

  test.each(STREAMS)('while it waits for a client that does not read: %s, %s', (_name, model, dialect) =>
    cutAt('stalled', dialect, model, { n: 10_000, pad: 65_536 }),
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

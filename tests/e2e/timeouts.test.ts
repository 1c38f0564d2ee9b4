import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Asked } from '../contract/dialect.ts'
import { ALL_DIALECTS, ask, DIALECTS, expectRefused, type PortDialect } from '../support/dialects.ts'
import { expectUnbegun, PACED, pacedModels, said } from '../support/paced.ts'
import { RawRequest } from '../support/raw-http.ts'
import { retried } from '../support/retries.ts'
import { startServer, type Server } from '../support/server.ts'

const LIMIT_S = 0.4
const NONE = { queueTimeout: 0, firstResponseTimeout: 0, gapTimeout: 0, requestTimeout: 0 }
const SHARED = { minWorkers: 1, maxWorkers: 1, asyncCommunication: true, maxConcurrency: 100 }

let server: Server

beforeAll(async () => {
  const limited = (limit: keyof typeof NONE, ending: string) =>
    pacedModels({ ...SHARED, ...NONE, [limit]: LIMIT_S }, ending)
  server = await startServer({
    models: [
      ...pacedModels({ ...SHARED, ...NONE, queueTimeout: LIMIT_S, maxConcurrency: 1 }, '-queue'),
      ...limited('firstResponseTimeout', '-first'),
      ...limited('gapTimeout', '-gap'),
      ...limited('requestTimeout', '-total'),
    ],
    config: ALL_DIALECTS,
  })
  const names = PACED.flatMap((kind) => ['queue', 'first', 'gap', 'total'].map((limit) => `${kind}-${limit}`))
  await Promise.all(names.map((name) => server.ready(name)))
  // The only slots of these are taken from now on.
  for (const kind of PACED) {
    const id = randomUUID()
    const plan = { id, first: 600_000 }
    // A handler of chats takes its own bodies there.
    const body = kind === 'chat' ? { messages: [{ role: 'user', content: JSON.stringify(plan) }] } : plan
    new RawRequest(server.ports.inference, `/predictions/${kind}-queue`, { body: JSON.stringify(body) })
    await said(server, 'began', id)
  }
})

interface Expected {
  /** The status of a wait in the queue, of a first response, of the whole request. */
  queue: string
  first: string
  total: string
}

const same = (status: string, queue: string): Expected => ({ queue, first: status, total: status })
const TORCHSERVE_GRPC = { queue: 'UNAVAILABLE', first: 'INTERNAL', total: 'DEADLINE_EXCEEDED' }

/** What each family of dialects says before the first item. */
function expectedOf({ name }: PortDialect): Expected {
  if (name.startsWith('TorchServe /')) return same('500', '503')
  if (name === 'TorchServe StreamPredictions2') return same('error_message', 'error_message')
  if (name.startsWith('TorchServe')) return TORCHSERVE_GRPC
  if (name === 'V2 ModelStreamInfer (Triton)') return same('error_message', 'error_message')
  if (name.startsWith('V2 Model')) return same('DEADLINE_EXCEEDED', 'DEADLINE_EXCEEDED')
  return same('504', '503')
}

/** TorchServe's package has TorchServe's statuses, but for handlers that take tensors themselves. */
function expectedFor(dialect: PortDialect, model: string): Expected {
  const own = dialect.name === 'V2 ModelInfer (TorchServe)' && model.startsWith('paced')
  return own ? TORCHSERVE_GRPC : expectedOf(dialect)
}

const MESSAGES = {
  queue: `Timed out after ${LIMIT_S} s: waited too long for a worker (queueTimeout)`,
  first: `Timed out after ${LIMIT_S} s: no response (firstResponseTimeout)`,
  gap: `Timed out after ${LIMIT_S} s: no further response (gapTimeout)`,
  total: `Timed out after ${LIMIT_S} s: the whole request took too long (requestTimeout)`,
}

/**
 * The items so far, and an end that no client takes for a normal one. A broken chunked body contains no
 * message.
 */
function expectFailed({ items, end }: Asked, dialect: PortDialect, count: number, message: string): void {
  expect(items.map(({ text }) => Number(text))).toEqual(Array.from({ length: count }, (_, k) => k + 1))
  const words = dialect.name.startsWith('TorchServe /') ? 'aborted' : message
  expect(end).toMatchObject({ kind: 'failed', message: expect.stringContaining(words) as unknown })
}

type Row = [name: string, dialect: PortDialect]
const ALL = DIALECTS.map((dialect): Row => [dialect.name, dialect])
const STREAMS = ALL.filter(([, dialect]) => !dialect.whole)
const WHOLE = ALL.filter(([, dialect]) => dialect.whole)

/** Rows of a table that run at the same time. */
const TOGETHER = 4

/**
 * All kinds of handlers at the same time, and the next rows with them, because most of it is waiting. Each
 * row's own test waits for it.
 */
function ofAllModels(rows: Row[], test: (dialect: PortDialect, model: string) => Promise<void>) {
  const begun = new Map<PortDialect, Promise<unknown>>()
  return async (_name: string, dialect: PortDialect): Promise<void> => {
    const at = rows.findIndex(([, each]) => each === dialect)
    for (const [, each] of rows.slice(at, at + TOGETHER)) {
      if (begun.has(each)) continue
      const row = Promise.all(each.models.map((model) => test(each, model)))
      row.catch(() => undefined)
      begun.set(each, row)
    }
    await begun.get(dialect)
  }
}

/**
 * Cases without a text response: TorchServe's routes always stream from predictStream, and its V2 needs JSON
 * from `handle`.
 */
function isOdd({ name }: PortDialect, model: string): boolean {
  return name === (model === 'native' ? 'TorchServe /predictions whole' : 'V2 ModelInfer (TorchServe)')
}

describe('a limit on time', () => {
  test.each(ALL)(
    'before the first item is a status: %s',
    ofAllModels(ALL, async (dialect, model) => {
      const { queue, first, total } = expectedFor(dialect, model)
      const [waited, silent, long] = await Promise.all([
        ask(server, dialect, `${model}-queue`, {}),
        ask(server, dialect, `${model}-first`, { first: 60_000 }),
        ask(server, dialect, `${model}-total`, { first: 60_000 }),
      ])
      expectRefused(waited, queue, MESSAGES.queue)
      expectUnbegun(server, waited.id)
      expectRefused(silent, first, MESSAGES.first)
      expectRefused(long, total, MESSAGES.total)
      await Promise.all([silent, long].map(({ id }) => said(server, 'aborted', id)))
    }),
  )

  test.each(STREAMS)(
    'after the first item is a failure: %s',
    ofAllModels(STREAMS, async (dialect, model) => {
      const asked = ask(server, dialect, `${model}-gap`, { gap: 60_000 })
      await retried(async () => {
        const total = await ask(server, dialect, `${model}-total`, { gap: 60_000 })
        await said(server, 'aborted', total.id)
        if (total.items.length === 0) return total.end // before its first item could come
        expectFailed(total, dialect, 1, MESSAGES.total)
      })
      const gap = await asked
      expectFailed(gap, dialect, 1, MESSAGES.gap)
      await said(server, 'aborted', gap.id)
    }),
  )

  test.each(WHOLE)(
    'after some items leaves nothing of a whole answer: %s',
    ofAllModels(WHOLE, async (dialect, model) => {
      if (isOdd(dialect, model)) return
      const asked = await ask(server, dialect, `${model}-total`, { gap: 250, n: 100 })
      expectRefused(asked, expectedFor(dialect, model).total, MESSAGES.total)
    }),
  )

  test.each(ALL)(
    'on one thing does not limit another: %s',
    ofAllModels(ALL, async (dialect, model) => {
      if (isOdd(dialect, model)) return
      const gaps = { n: 4, gap: 200 }
      await retried(async () => {
        const answers = await Promise.all([
          ask(server, dialect, `${model}-gap`, { n: 2, first: 600 }),
          ask(server, dialect, `${model}-gap`, gaps),
          ...(dialect.whole ? [] : [ask(server, dialect, `${model}-first`, gaps)]),
        ])
        const late = answers.map(({ end }) => end).filter(({ kind }) => kind !== 'finished')
        return late.length === 0 ? undefined : late
      })
    }),
  )
})

import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { itemCost } from '../../protocol/credit-stream.ts'
import { runHandler } from '../../backend-worker/testing.ts'
import type { Context, HandlerRequest } from '../../backend-worker/handler.ts'
import {
  type Answer,
  request,
  type RequestOptions,
  startWorker,
  type WorkerConnection,
} from '../support/worker-process.ts'

/**
 * Gives each request `n` items, one per step. `how` selects how the handler says that a request continues. A
 * step with a request that has `gate` waits until a describe opens the gate. Every step and every release is
 * logged.
 */
const STEPS = `
let open = () => undefined
export async function handle(requests, context) {
  context.logger.info('step ' + context.requestIds.join(' '))
  if (requests.some(({ body }) => body.gate)) await new Promise((resolve) => { open = resolve })
  for (const { body } of requests) if (body.throws) throw new Error('no step')
  context.stoppingCriteria = []
  return requests.map(({ body }, i) => {
    const id = context.requestIds[i]
    const step = (context.cache.get(id) ?? 0) + 1
    context.cache.set(id, step)
    if (body.bad === step) return new Error('no item')
    const goes = step < body.n
    if (body.how === 'header') context.setResponseHeader(i, 'ts_stream_next', String(goes))
    else if (body.how === 'next') context.setStreamNext(i, goes)
    else if (body.how === 'null') context.stoppingCriteria[i] = () => goes ? false : null
    else if (body.how !== 'silent') context.stoppingCriteria[i] = (item) => item === id + '#' + body.n
    return step === body.quiet ? undefined : id + '#' + step
  })
}
export function release(id, context) { context.logger.info('release ' + id + ' ' + context.cache.has(id)) }
export function describe() { open(); return { opened: true } }
export function explain(requests, context) { return requests.map(() => 'because') }
`

let worker: WorkerConnection
let last = 0
beforeAll(async () => {
  worker = await startWorker(STEPS, {}, { continuousBatching: true, batchSize: 8 })
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
  expect(worker.process.stderr).toBe('')
})

function start(body: unknown, more?: RequestOptions): number {
  worker.predict(request(++last, body, more))
  return last
}

/** Opens the gate of the waiting step. */
async function openGate(): Promise<void> {
  const id = ++last
  worker.send({ type: 'predict', requests: [request(id, {}, { method: 'describe' })] })
  await worker.answer(id)
}

/** Waits until the handler logs this. */
async function logged(message: string): Promise<void> {
  while ((await worker.next('log')).message !== message);
}

async function answer(body: unknown): Promise<Answer> {
  return worker.answer(start(body))
}

describe('a request in steps', () => {
  test('gives an intermediate response per step and ends with the one that its criterion stops at', async () => {
    const { items, marks } = await answer({ n: 3 })
    expect(items).toEqual([1, 2, 3].map((k) => `id-${last}#${k}`))
    expect(marks).toEqual(['true', 'true', 'false'])
  })

  test('that ends with its first step has an ordinary whole answer', async () => {
    const { items, marks } = await answer({ n: 1 })
    expect(items).toEqual([`id-${last}#1`])
    expect(marks).toEqual([undefined])
  })

  test.each(['header', 'next', 'null'])('may say that it goes on by: %s', async (how) => {
    const { items, marks } = await answer({ n: 2, how })
    expect(items).toEqual([`id-${last}#1`, `id-${last}#2`])
    expect(marks).toEqual(['true', 'false'])
  })

  test('of which the handler says nothing ends', async () => {
    expect((await answer({ n: 5, how: 'silent' })).marks).toEqual([undefined])
  })

  test('may have nothing to say in a step', async () => {
    const { items } = await answer({ n: 3, quiet: 2 })
    expect(items).toEqual([`id-${last}#1`, `id-${last}#3`])
    expect(worker.received).toContainEqual({ type: 'alive', id: last })
  })

  test('whose item is an error fails, its neighbour goes on', async () => {
    const bad = start({ n: 4, bad: 2 })
    const good = start({ n: 3 })
    expect((await worker.answer(bad)).error).toMatchObject({ code: 'HANDLER_FAILED' })
    expect((await worker.answer(good)).items).toHaveLength(3)
  })

  test('is explained in one call of its own', async () => {
    const id = start({ n: 3 }, { method: 'explain' })
    expect((await worker.answer(id)).items).toEqual(['because'])
  })
})

describe('steps', () => {
  test('are shared by all that run: new ones join, finished ones leave', async () => {
    const a = start({ n: 3, gate: true })
    await logged(`step id-${a}`)
    const b = start({ n: 1 })
    await openGate()
    await logged(`step id-${a} id-${b}`)
    await openGate()
    await logged(`step id-${a}`)
    await openGate()
    expect((await worker.answer(a)).items).toHaveLength(3)
    expect((await worker.answer(b)).items).toHaveLength(1)
  })

  test('what arrives together shares the first one', async () => {
    const ids = [1, 2, 3].map((n) => ({ ...request(++last, { n }) }))
    worker.predict(...ids)
    await logged(`step ${ids.map(({ requestId }) => requestId).join(' ')}`)
    for (const { id } of ids) await worker.answer(id)
  })

  test('that throw fail the requests in them and no others', async () => {
    const a = start({ n: 3, gate: true })
    await logged(`step id-${a}`)
    const b = start({ n: 9, throws: true, gate: true })
    await openGate()
    await logged(`step id-${a} id-${b}`)
    const c = start({ n: 2 })
    await openGate()
    expect((await worker.answer(a)).error).toMatchObject({ code: 'HANDLER_FAILED' })
    expect((await worker.answer(b)).error).toMatchObject({ code: 'HANDLER_FAILED' })
    expect((await worker.answer(c)).items).toHaveLength(2)
  })
})

describe('a request leaves', () => {
  test('when it has ended: its cache entry is gone and the handler hears it', async () => {
    const id = start({ n: 2 })
    await logged(`release id-${id} false`)
  })

  test('when it is cancelled: at the next step, and the others go on', async () => {
    const a = start({ n: 100, gate: true })
    const b = start({ n: 3, gate: true })
    await logged(`step id-${a} id-${b}`)
    worker.send({ type: 'cancel', id: a, reason: 'client left' })
    await openGate()
    await logged(`release id-${a} false`)
    await logged(`step id-${b}`)
    await openGate()
    await logged(`step id-${b}`)
    await openGate()
    expect(await worker.answer(a)).toMatchObject({ items: [], error: { code: 'CANCELLED' } })
    expect((await worker.answer(b)).items).toHaveLength(3)
  })

  test('when it is cancelled while its reader has no room, though no step is due', async () => {
    const id = start({ n: 100 }, { window: 1 })
    await logged(`step id-${id}`)
    worker.send({ type: 'cancel', id: id, reason: 'client left' })
    expect((await worker.answer(id)).error).toMatchObject({ code: 'CANCELLED' })
    await logged(`release id-${id} false`)
  })
})

test('a request whose reader is slow stays out of the steps until it has room, the others go on', async () => {
  const slow = start({ n: 3 }, { window: 1 })
  await logged(`step id-${slow}`)
  const fast = start({ n: 2 })
  await logged(`step id-${fast}`)
  await worker.answer(fast)
  worker.send({ type: 'credit', id: slow, bytes: itemCost(64) })
  await logged(`step id-${slow}`)
  worker.send({ type: 'credit', id: slow, bytes: itemCost(64) })
  expect((await worker.answer(slow)).items).toEqual([1, 2, 3].map((k) => `id-${slow}#${k}`))
})

test('a worker that is told to leave finishes its steps first', async () => {
  const leaving = await startWorker(STEPS, {}, { continuousBatching: true })
  leaving.predict(request(1, { n: 50 }))
  leaving.send({ type: 'unload' })
  expect((await leaving.answer(1)).items).toHaveLength(50)
  expect(await leaving.process.exited).toBe(0)
})

test('handlers with steps can be tested without a server', async () => {
  const steps: number[] = []
  const count = (requests: HandlerRequest[], context: Context): string[] => {
    steps.push(requests.length)
    context.stoppingCriteria = requests.map(({ body }, i) => () => {
      const left = ((context.cache.get(context.requestIds[i]!) as number | undefined) ?? Number(body)) - 1
      context.cache.set(context.requestIds[i]!, left)
      return left === 0
    })
    return requests.map(() => 'x')
  }
  const { responses } = await runHandler(count, [1, 3, 2], { continuousBatching: true })
  expect(responses.map(({ items }) => items.length)).toEqual([1, 3, 2])
  expect(steps).toEqual([3, 2, 1])
})

import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { startWorker, type WorkerConnection } from '../support/worker-process.ts'
import { run, SCRIPTED } from './scripted.ts'

let worker: WorkerConnection
let id = 0
beforeAll(async () => {
  worker = await startWorker(SCRIPTED)
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
})

async function logged(message: string): Promise<void> {
  while ((await worker.next('log')).message !== message);
}

const waitForAbort = `await new Promise((resolve) => context.signal.addEventListener('abort', resolve));`

test.each(['client left', 'deadline', 'timeout', 'shutdown', 'failed'] as const)(
  'the signal aborts and says why: %s',
  async (reason) => {
    worker.predict(
      run(
        ++id,
        `${waitForAbort} context.logger.info(context.signal.reason.name + ': ' + context.signal.reason.message); return ['']`,
      ),
    )
    await worker.ping()
    worker.send({ type: 'cancel', id: id, reason })
    await logged(`AbortError: The request was cancelled: ${reason}`)
    expect((await worker.answer(id)).error).toMatchObject({ code: 'CANCELLED' })
  },
)

test('a handler that throws after its abort ends as cancelled, with one end', async () => {
  worker.predict(run(++id, `${waitForAbort} throw new Error('stopped')`))
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  worker.send({ type: 'cancel', id: id, reason: 'timeout' })
  const { error } = await worker.answer(id)
  expect(error).toMatchObject({ code: 'CANCELLED', message: 'The request was cancelled: client left' })
  await worker.ping()
  expect(worker.received.filter((message) => 'id' in message && message.id === id)).toHaveLength(1)
})

test('the end of a cancelled request comes when the handler has returned, not before', async () => {
  worker.predict(run(++id, `await new Promise((resolve) => { shared.go = resolve }); return ['done']`))
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  await worker.ping()
  expect(worker.received.some((message) => 'id' in message && message.id === id)).toBe(false)
  worker.predict(run(++id, `shared.go(); return ['']`))
  expect((await worker.answer(id - 1)).error!.code).toBe('CANCELLED')
})

test('a loop that awaits its sends stops by itself', async () => {
  worker.predict(run(++id, `shared.n = 0; for (;;) { await send(['x']); shared.n++ }`, {}, { window: 1 }))
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  expect((await worker.answer(id)).error!.code).toBe('CANCELLED')
})

test('a send that waits rejects with the reason of the abort', async () => {
  worker.predict(
    run(
      ++id,
      `await send(['x']).catch((e) => context.logger.info(e === context.signal.reason ? 'same' : 'other')); return ['']`,
      {},
      { window: 1 },
    ),
  )
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  await logged('same')
})

test('one request of a batch leaves: its signal aborts, its items are dropped, the others go on', async () => {
  const code = `
    await new Promise((resolve) => context.requestSignal(1).addEventListener('abort', resolve))
    await send(['a', 'b', 'c'])
    return [0, 1, 2].map((i) => String(context.requestSignal(i).aborted) + context.signal.aborted)`
  const ids = [++id, ++id, ++id]
  worker.predict(...ids.map((one) => run(one, code)))
  await worker.ping()
  worker.send({ type: 'cancel', id: ids[1]!, reason: 'client left' })
  const answers = await Promise.all(ids.map((one) => worker.answer(one)))
  expect(answers.map(({ items }) => items)).toEqual([['a', 'falsefalse'], [], ['c', 'falsefalse']])
  expect(answers[1]!.error!.code).toBe('CANCELLED')
})

test('sends to a request that left do not fail its neighbours', async () => {
  const code = `
    await new Promise((resolve) => context.requestSignal(1).addEventListener('abort', resolve))
    await send([undefined, 'x']); await send(['y', 'z']); return ['end', 'never']`
  const ids = [++id, ++id]
  worker.predict(...ids.map((one) => run(one, code)))
  await worker.ping()
  worker.send({ type: 'cancel', id: ids[1]!, reason: 'client left' })
  expect((await worker.answer(ids[0]!)).items).toEqual(['y', 'end'])
  expect((await worker.answer(ids[1]!)).error!.code).toBe('CANCELLED')
})

test('a loop of sends to a request that left, its window used up, lets messages in', async () => {
  const code = `
    void send([undefined, 'fills the window'])
    await new Promise((resolve) => context.requestSignal(1).addEventListener('abort', resolve))
    for (;;) await send([undefined, 'x'])`
  const ids = [++id, ++id]
  worker.predict(...ids.map((one) => run(one, code, {}, { window: 1 })))
  await worker.ping()
  worker.send({ type: 'cancel', id: ids[1]!, reason: 'client left' })
  await worker.ping()
  worker.send({ type: 'cancel', id: ids[0]!, reason: 'client left' })
  for (const one of ids) expect((await worker.answer(one)).error!.code).toBe('CANCELLED')
})

test('a send to one request that waits for room goes on when that one leaves', async () => {
  const code = `void send([undefined, 'x']); await send([undefined, 'x']); return ['end', 'never']`
  const ids = [++id, ++id]
  worker.predict(...ids.map((one) => run(one, code, {}, { window: 1 })))
  await worker.ping()
  worker.send({ type: 'cancel', id: ids[1]!, reason: 'client left' })
  expect((await worker.answer(ids[0]!)).items).toEqual(['end'])
})

test("the batch's signal aborts when its last request is gone, also when asked for later", async () => {
  const code = `
    if (shared.early) context.signal.addEventListener('abort', () => context.logger.info('early'))
    await new Promise((resolve) => context.requestSignal(1).addEventListener('abort', resolve))
    context.logger.info(String(context.signal.aborted)); return ['', '']`
  for (const early of [true, false]) {
    worker.predict(run(++id, `shared.early = ${early}; return ['']`))
    const ids = [++id, ++id]
    worker.predict(...ids.map((one) => run(one, code)))
    await worker.ping()
    for (const one of ids) worker.send({ type: 'cancel', id: one, reason: 'shutdown' })
    if (early) await logged('early')
    await logged('true')
    await worker.answer(ids[1]!)
  }
})

test('a cancelled request whose final response waits for its reader ends at once', async () => {
  worker.predict(run(++id, `void send(['a']); void send(['b']); return ['c']`, {}, { window: 1 }))
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  const { items, error } = await worker.answer(id)
  expect(items).toEqual(['a'])
  expect(error!.code).toBe('CANCELLED')
})

test('cancelling what has ended or never was is ignored', async () => {
  for (const one of [id, 1_000_000]) worker.send({ type: 'cancel', id: one, reason: 'client left' })
  await worker.ping()
})

test('an abort reason that nobody catches does not end the worker', async () => {
  worker.predict(
    run(
      ++id,
      `void (async () => { for (;;) await send(['x']) })()
      context.signal.addEventListener('abort', () => setTimeout(() => context.signal.throwIfAborted()))
      ${waitForAbort} await new Promise((r) => setTimeout(r, 20)); return ['']`,
      {},
      { window: 1 },
    ),
  )
  await worker.ping()
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  await worker.answer(id)
  await worker.ping()
})

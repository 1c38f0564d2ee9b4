import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { request, startWorker, type WorkerConnection } from '../support/worker-process.ts'

let worker: WorkerConnection
let id = 0
beforeAll(async () => {
  worker = await startWorker(`
    const log = (context, message) => context.logger.info(message)
    const kinds = {
      async *last(requests) { yield ['a']; yield ['b']; return ['end'] },
      async *open(requests) { yield ['a'] },
      async *none() {},
      async *text() { yield 'text' },
      async *wrong() { yield ['a']; return ['x', 'y'] },
      async *fails() { yield ['a']; throw new Error('inside') },
      async *endless(requests, context) {
        try { for (let i = 0; ; i++) { log(context, 'yield ' + i); yield [String(i)] } }
        finally { await null; log(context, 'finally') }
      },
      async *deaf(requests, context) {
        try { log(context, 'waiting'); await new Promise((r) => context.signal.addEventListener('abort', r)); yield ['late'] }
        finally { log(context, 'finally') }
      },
      stream(requests, context) {
        let stop
        return { [Symbol.asyncIterator]: () => ({
          next: () => { log(context, 'waiting'); return new Promise((resolve) => { stop = () => resolve({ done: true }) }) },
          return: async () => { log(context, 'returned'); stop(); return { done: true } },
        }) }
      },
    }
    export default class { handle(requests, context) { return kinds[requests[0].body](requests, context) } }`)
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
})

function start(kind: string, window = 65_536): void {
  worker.predict(request(++id, kind, { window }))
}

async function logged(message: string): Promise<void> {
  while ((await worker.next('log')).message !== message);
}

test.each([
  ['last', ['a', 'b', 'end'], ['true', 'true', 'false']],
  ['open', ['a', ''], ['true', 'false']],
  ['none', [''], [undefined]],
])('each yield is an intermediate response, the return value the last: %s', async (kind, items, marks) => {
  start(kind)
  expect(await worker.answer(id)).toMatchObject({ items, marks, error: undefined })
})

test.each([
  ['text', [], 'INVALID_OUTPUT'],
  ['wrong', ['a'], 'INVALID_OUTPUT'],
  ['fails', ['a'], 'HANDLER_FAILED'],
])('a generator that goes wrong fails after its items: %s', async (kind, items, code) => {
  start(kind)
  const answer = await worker.answer(id)
  expect(answer.items).toEqual(items)
  expect(answer.error!.code).toBe(code)
})

test('the next item is asked for when there is room', async () => {
  start('endless', 60)
  await logged('yield 0')
  await worker.ping()
  expect(worker.received.at(-2)).toMatchObject({ type: 'response', id })
  worker.send({ type: 'credit', id, bytes: 10 })
  await logged('yield 1')
  worker.send({ type: 'cancel', id: id, reason: 'client left' })
  await logged('finally')
  expect((await worker.answer(id)).error).toMatchObject({ code: 'CANCELLED' })
})

test('cancelled while it computes: it ends at its next yield, with its finally', async () => {
  start('deaf')
  await logged('waiting')
  worker.send({ type: 'cancel', id: id, reason: 'deadline' })
  await logged('finally')
  expect(await worker.answer(id)).toMatchObject({ items: [], error: { code: 'CANCELLED' } })
})

test('an iterator of its own is told to return as soon as nobody waits', async () => {
  start('stream')
  await logged('waiting')
  worker.send({ type: 'cancel', id: id, reason: 'timeout' })
  await logged('returned')
  expect((await worker.answer(id)).error).toMatchObject({ code: 'CANCELLED' })
})

import { expect, test } from '@jest/globals'
import { request, startWorker } from '../support/worker-process.ts'

const NOTES = `
export function handle(requests, context) {
  return requests.map(({ body }, i) => {
    const id = context.sequenceId(i) ?? 'none'
    const all = (context.cache.get(id) ?? '') + body
    context.cache.set(id, all)
    return all
  })
}
export function onSequenceEnd(id, { cache, requestIds }) {
  console.log('end of ' + id + ': ' + cache.get(id) + ' ' + requestIds.length)
  if (id === 'throws') throw new Error('no end')
  if (id === 'rejects') return Promise.reject(new Error('no later end'))
}
export function shutdown() { console.log('shut down') }
`
const SEQUENCES = { modelConfig: { sequenceBatching: true } }
let last = 0
const note = (id: string, body: string) => request(++last, body, { headers: { TS_REQUEST_SEQUENCE_ID: id } })

test('the handler hears of the end of a sequence, then its entry leaves the cache', async () => {
  const worker = await startWorker(NOTES, {}, SEQUENCES)
  worker.predict(note('a', 'x'), note('b', 'y'))
  worker.send({ type: 'sequenceEnd', sequence: 'a' })
  worker.predict(note('a', 'z'), note('b', 'z'))
  expect([(await worker.answer(last - 1)).items, (await worker.answer(last)).items]).toEqual([['z'], ['yz']])
  await worker.process.line('end of a: x 0')
  expect(await worker.close()).toBe(0)
})

test('a hook that throws or rejects is logged; the entry goes, and the worker goes on', async () => {
  const worker = await startWorker(NOTES, {}, SEQUENCES)
  for (const [id, error] of [
    ['throws', 'no end'],
    ['rejects', 'no later end'],
  ] as const) {
    worker.predict(note(id, 'x'))
    worker.send({ type: 'sequenceEnd', sequence: id })
    expect((await worker.next('log')).message).toMatch(
      new RegExp(`^The handler threw in onSequenceEnd: Error: ${error}`),
    )
    worker.predict(note(id, 'y'))
    expect((await worker.answer(last)).items).toEqual(['y'])
  }
  expect(await worker.close()).toBe(0)
})

test('a worker that ends tells of what is open, before the handler shuts down', async () => {
  const worker = await startWorker(NOTES, {}, SEQUENCES)
  worker.predict(note('open', 'x'), note('ended', 'x'))
  await worker.answer(last)
  worker.send({ type: 'sequenceEnd', sequence: 'ended' })
  worker.send({ type: 'unload' })
  expect(await worker.process.exited).toBe(0)
  const printed = worker.process.stdout.split('\n').filter((line) => /end of|shut/.test(line))
  expect(printed).toEqual(['end of ended: x 0', 'end of open: x 0', 'shut down'])
})

test('a model without sequences has no end of one, whatever its clients send', async () => {
  const worker = await startWorker(NOTES)
  worker.predict(note('a', 'x'))
  await worker.answer(last)
  expect(await worker.close()).toBe(0)
  expect(worker.process.stdout).not.toContain('end of')
})

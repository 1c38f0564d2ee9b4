import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { request, startWorker, type WorkerConnection } from '../support/worker-process.ts'
import { run, SCRIPTED } from './scripted.ts'

let worker: WorkerConnection
beforeAll(async () => {
  worker = await startWorker(SCRIPTED, { env: { RANK: '2', LOCAL_RANK: '1', WORLD_SIZE: '4' } })
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
})

test('a rank other than 0 runs the handler, sends no answer and tells when it is done', async () => {
  worker.predict(
    run(
      1,
      `const { rank, localRank, worldSize } = context.properties
      context.logger.info([rank, localRank, worldSize].join()); await send(['x', 'y']); await send('wrong'); return ['a', 'b']`,
    ),
    run(2, ''),
  )
  expect((await worker.next('log')).message).toBe('2,1,4')
  for (const id of [1, 2]) expect(await worker.next('finished')).toEqual({ type: 'finished', id })
  expect(worker.received.some(({ type }) => type === 'response' || type === 'failure')).toBe(false)
  expect(worker.received[0]).toMatchObject({ type: 'ready', rank: 2 })
})

test('a handler that throws there is logged, and finished too', async () => {
  worker.predict(run(3, `throw new Error('on rank 2')`))
  expect(await worker.next('log')).toMatchObject({
    level: 'error',
    message: expect.stringContaining('on rank 2'),
  })
  expect(await worker.next('finished')).toEqual({ type: 'finished', id: 3 })
})

test('the cancel reaches it: the signal aborts and a loop of awaited sends stops', async () => {
  worker.predict(run(4, `for (;;) await send(['x'])`))
  await worker.ping()
  worker.send({ type: 'cancel', id: 4, reason: 'client left' })
  expect(await worker.next('finished')).toEqual({ type: 'finished', id: 4 })
})

test('describe and answers of any shape finish without an answer', async () => {
  worker.send({ type: 'predict', requests: [request(5, {}, { method: 'describe' })] })
  expect(await worker.next('finished')).toEqual({ type: 'finished', id: 5 })
  worker.predict(run(6, 'return undefined'))
  expect(await worker.next('finished')).toEqual({ type: 'finished', id: 6 })
})

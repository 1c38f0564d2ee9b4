import { expect, test } from '@jest/globals'
import { openRequest } from '../../frontend/watch/moment.ts'
import { testJob } from '../support/jobs.ts'

const HOLDER = { abandon: () => undefined, drained: () => undefined }

test.each([
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8::7', '2001:db8::7'],
])('the client %s is shown as %s', (address, shown) => {
  const { job } = testJob('r', { sender: { address, keyName: 'mobile', identity: 'api key mobile' } })
  expect(openRequest(job, performance.now())).toMatchObject({ client: shown, key: 'mobile' })
})

test('times count from the arrival of the request', () => {
  const { job } = testJob('r')
  const { createdAt } = job
  expect(openRequest(job, createdAt + 1500.2)).toMatchObject({ ageMs: 1500, firstResponseMs: undefined })
  job.firstResponseAt = createdAt + 12.3456
  job.lastGap = 0.12345
  expect(openRequest(job, createdAt + 1500.2)).toMatchObject({ firstResponseMs: 12.346, lastGapMs: 0.123 })
})

test('a request waits for a worker, then for its handler, and for a client that does not read', () => {
  const { job, sink } = testJob('r')
  const waitsFor = (): string => openRequest(job, performance.now()).waitsFor
  expect(waitsFor()).toBe('worker')
  job.started(HOLDER)
  expect(waitsFor()).toBe('handler')
  sink.room = false
  job.respond({ status: 200, headers: {}, body: Buffer.from('item'), more: true })
  expect(waitsFor()).toBe('client')
  job.drained()
  expect(waitsFor()).toBe('handler')
})

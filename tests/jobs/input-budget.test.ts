import { expect, test } from '@jest/globals'
import type { Job } from '../../frontend/jobs/job.ts'
import type { JobHolder } from '../../frontend/jobs/scheduler.ts'
import { InputBudget, JobIndex } from '../../frontend/jobs/open-jobs.ts'
import { testJob } from '../support/jobs.ts'

const HOLDER: JobHolder = { abandon: () => undefined, drained: () => undefined }
const FULL = expect.objectContaining({ code: 'QUEUE_FULL', retryAfterMs: 1000 }) as unknown as Error

function rig(limit: number) {
  const workers = { unsent: 0 }
  const budget = new InputBudget(limit, () => workers.unsent)
  const index = new JobIndex(budget)
  let jobs = 0
  const enter = (bytes: number): Job => {
    const parts = [{ name: 'body', data: Buffer.alloc(bytes) }]
    const { job } = testJob(`r${(jobs += 1)}`, { parts, headers: '' })
    index.enter(job)
    return job
  }
  return { budget, index, workers, enter }
}

test('the inputs of open jobs count until their workers have them, whatever their queues', () => {
  const { budget, index, enter } = rig(1_000)
  const [first, second] = [enter(600), enter(400)]
  expect(() => enter(1)).toThrow(FULL)
  expect(index.size).toBe(2)
  first.started(HOLDER)
  expect(budget.heldBytes).toBe(400)
  enter(600)
  second.cancel()
  first.cancel()
  expect(budget.heldBytes).toBe(600)
})

test('a job alone may have any number of bytes', () => {
  const { enter } = rig(1_000)
  const job = enter(5_000)
  expect(() => enter(1)).toThrow(FULL)
  job.started(HOLDER)
  enter(1)
})

test('what workers have not taken counts for the next large input', () => {
  const { workers, enter } = rig(200_000)
  workers.unsent = 150_000
  expect(() => enter(100_000)).toThrow(FULL)
  enter(100)
  workers.unsent = 0
  enter(100_000)
})

test('what a job holds besides counts until it ends', () => {
  const { budget, enter } = rig(1_000)
  const job = enter(400)
  job.started(HOLDER)
  job.hold(300)
  job.hold(300)
  const other = enter(400)
  expect(() => job.hold(1)).toThrow(FULL)
  other.cancel()
  job.cancel()
  expect(budget.heldBytes).toBe(0)
})

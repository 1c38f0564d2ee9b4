import { afterEach, expect, jest, test } from '@jest/globals'
import type { Job } from '../../frontend/jobs/job.ts'
import type { JobHolder } from '../../frontend/jobs/scheduler.ts'
import { jobLimits } from '../../frontend/jobs/time-limit.ts'
import { JobIndex, OpenJobs } from '../../frontend/jobs/open-jobs.ts'
import { testJob } from '../support/jobs.ts'

const HOLDER: JobHolder = { abandon: () => undefined, drained: () => undefined }
const NO_LIMITS = jobLimits({ queue: 0, firstResponse: 0, gap: 0, total: 0 })

function item(job: Job, more: boolean): void {
  job.respond({ status: 200, headers: {}, body: Buffer.from('x'), more })
}

afterEach(() => {
  jest.useRealTimers()
})

test('streams are the open jobs whose first item was sent', () => {
  const jobs = new Set<Job>()
  const open = new OpenJobs(new JobIndex(), { ended: (job) => jobs.delete(job) })
  const [queued, running, streaming] = ['queued', 'running', 'streaming'].map((id) => {
    const { job } = testJob(id)
    open.add(job)
    jobs.add(job)
    job.queued(HOLDER, NO_LIMITS)
    return job
  }) as [Job, Job, Job]
  running.started(HOLDER)
  streaming.started(HOLDER)
  expect([open.size, open.progress().streams]).toEqual([3, 0])
  item(streaming, true)
  expect([open.size, open.progress().streams]).toEqual([3, 1])
  item(running, true)
  expect(open.progress().streams).toBe(2)
  item(streaming, false)
  queued.cancel('client left')
  expect([open.size, open.progress().streams]).toEqual([1, 1])
  item(running, false)
  expect([open.size, open.progress().streams]).toEqual([0, 0])
})

test('who waits for the last job waits no longer than that, and leaves no timer', async () => {
  jest.useFakeTimers()
  const jobs = new Set<Job>()
  const open = new OpenJobs(new JobIndex(), { ended: (job) => jobs.delete(job) })
  const { job } = testJob('last')
  open.add(job)
  jobs.add(job)
  job.queued(HOLDER, NO_LIMITS)
  const drained = open.drain(60_000)
  job.cancel('client left')
  await drained
  expect(jest.getTimerCount()).toBe(0)
})

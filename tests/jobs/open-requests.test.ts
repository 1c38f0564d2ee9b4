import { expect, test } from '@jest/globals'
import { JobIndex } from '../../frontend/jobs/job-index.ts'
import { OpenRequests } from '../../frontend/jobs/open-requests.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { ReplySink } from '../../frontend/jobs/reply-sink.ts'

function opened(index: JobIndex): { job: Job; failures: string[] } {
  const failures: string[] = []
  const never = (): never => {
    throw new Error('Not expected')
  }
  const sink: ReplySink = {
    whole: never,
    open: never,
    write: never,
    close: never,
    fail: ({ code }) => void failures.push(code),
  }
  const job = new Job(
    { requestId: 'abc-1', modelName: 'count', method: 'handle', headers: '', parts: [] },
    sink,
  )
  index.enter(job)
  return { job, failures }
}

test('a request is found by its id alone, and ends', () => {
  const index = new JobIndex()
  const { job, failures } = opened(index)
  const requests = new OpenRequests(index)
  expect(() => requests.cancel('abc-2')).toThrow(expect.objectContaining({ code: 'REQUEST_NOT_FOUND' }))
  expect([job.ended, failures]).toEqual([false, []])
  expect(requests.cancel('abc-1')).toBe('count')
  expect([job.outcome, failures]).toEqual(['cancelled', ['CANCELLED']])
})

import { describe, expect, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { JobRequest } from '../../frontend/jobs/job-request.ts'
import { JobIndex, OpenJobs } from '../../frontend/jobs/open-jobs.ts'
import { JobQueue } from '../../frontend/jobs/job-queue.ts'
import type { ReplySink } from '../../frontend/jobs/reply-sink.ts'
import type { Model } from '../../frontend/models/model.ts'
import { CollectingRun, WorkflowNode } from '../../frontend/workflows/node-run.ts'
import { testJob } from '../support/jobs.ts'

const SINK: ReplySink = {
  whole: () => undefined,
  open: () => undefined,
  write: () => true,
  close: () => undefined,
  fail: () => undefined,
}

function newJob(requestId: string): Job {
  const request: JobRequest = { requestId, modelName: 'm', method: 'handle', headers: '', parts: [] }
  return new Job(request, SINK)
}

describe('the index of open jobs', () => {
  test('has every job from its entry to its end, whatever its end is', () => {
    const index = new JobIndex()
    const ended: string[] = []
    const open = new OpenJobs(index, { ended: ({ request }) => ended.push(request.requestId) })
    const jobs = ['finished', 'failed', 'cancelled', 'aborted'].map(newJob)
    for (const job of jobs) open.add(job)
    expect(jobs.map(({ request }) => index.get(request.requestId))).toEqual(jobs)
    const [finished, failed, cancelled, aborted] = jobs
    finished!.respond({ body: Buffer.alloc(0), status: 200, headers: {} })
    failed!.fail(new ServeError('HANDLER_FAILED', 'x'))
    cancelled!.cancel()
    cancelled!.cancel()
    aborted!.abort(new ServeError('CANCELLED', 'x'), 'failed')
    expect([index.size, open.size]).toEqual([0, 0])
    expect(ended).toEqual(['finished', 'failed', 'cancelled', 'aborted'])
  })

  test('takes no second open job of an id, and the first one stays', () => {
    const index = new JobIndex()
    const opens = [0, 1].map(() => new OpenJobs(index, { ended: () => undefined }))
    const [first, second] = [newJob('a'), newJob('a')]
    opens[0]!.add(first)
    expect(() => opens[1]!.add(second)).toThrow('Request a is already open')
    expect([index.get('a'), index.size, opens[1]!.size]).toEqual([first, 1, 0])
    first.cancel()
    opens[1]!.add(second)
    expect(index.get('a')).toBe(second)
  })

  test('forgets a job that was refused, and a stopping model does not wait for it', async () => {
    const index = new JobIndex()
    const ended: Job[] = []
    const open = new OpenJobs(index, { ended: (job) => ended.push(job) })
    const job = newJob('a')
    open.add(job)
    open.withdraw(job, new ServeError('QUEUE_FULL', 'full'))
    expect([index.size, open.size]).toEqual([0, 0])
    await open.drain(60_000)
    job.cancel()
    expect(ended).toEqual([])
  })

  test('has the job of each node of a workflow, every try under an id of its own', () => {
    const index = new JobIndex()
    const timeouts = { queue: 0, firstResponse: 0, gap: 0, total: 0 }
    const rule = { capacity: 9, batchSize: 1, maxBatchDelay: 0, timeouts, full: 'full' }
    const queue = new JobQueue(rule)
    const open = new OpenJobs(index, { ended: () => undefined })
    const model = {
      name: 'w__n',
      submit: (job: Job) => {
        open.add(job)
        queue.add(job)
      },
    } as unknown as Model
    const client = newJob('client')
    open.add(client)
    const nodes = ['one', 'two'].map(
      (name) =>
        new WorkflowNode({ name, url: undefined, retryAttempts: 1, timeoutMs: 1000 } as never, model, false),
    )
    const owner = { finished: () => undefined, failed: () => undefined, retried: () => undefined }
    for (const node of nodes) new CollectingRun(node, client.request, [], owner, 100).start()
    const ids = () =>
      ['client', 'client/one', 'client/one#2', 'client/two'].map((id) => index.get(id) !== undefined)
    expect([ids(), index.size]).toEqual([[true, true, false, true], 3])
    index.get('client/one')!.fail(new ServeError('HANDLER_FAILED', 'x'))
    expect([ids(), index.size]).toEqual([[true, false, true, true], 3])
    for (const job of [...index]) job.cancel()
    client.cancel()
    expect(index.size).toBe(0)
  })
})

test('a request is found by its id alone, and ends', () => {
  const index = new JobIndex()
  const { job, sink } = testJob('abc-1', { modelName: 'count' })
  index.enter(job)
  expect(() => index.cancel('abc-2')).toThrow(expect.objectContaining({ code: 'REQUEST_NOT_FOUND' }))
  expect([job.ended, sink.calls]).toEqual([false, []])
  expect(index.cancel('abc-1')).toBe('count')
  expect([job.outcome, sink.calls]).toEqual([
    'cancelled',
    ['fail CANCELLED The request was cancelled by an operator'],
  ])
})

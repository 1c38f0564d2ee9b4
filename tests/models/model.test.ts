import { expect, test } from '@jest/globals'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { testMetrics } from '../support/metrics.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { InputPart } from '../../common/handler-methods.ts'
import { JobIndex } from '../../frontend/jobs/open-jobs.ts'
import type { ModelSettings } from '../../frontend/models/model-settings.ts'
import { Model } from '../../frontend/models/model.ts'
import type { WorkerPool } from '../../frontend/models/worker-pool.ts'

const ALLOWANCE = 512 * 1024

/** A model whose workers take nothing, with a max_request_size of 1000. */
function modelThatWaits(jobQueueSize = 10): Model {
  const settings = {
    minWorkers: 1,
    maxWorkers: 1,
    jobQueueSize,
    batchSize: 1,
    maxBatchDelay: 0,
    timeouts: { queue: 0, firstResponse: 0, gap: 0, total: 0 },
  } as ModelSettings
  return new Model(
    {
      name: 'm',
      url: 'm.mar',
      prepared: { version: '1.0' } as PreparedModel,
      settings,
      metrics: testMetrics().model('m', '1.0'),
      loadedAtStartup: false,
      maxRequestBytes: 1000,
      jobs: new JobIndex(),
      sequenceHeaders: { id: 'id', start: 'start', end: 'end' },
    },
    () => ({ wanted: 1 }) as WorkerPool,
  )
}

function job(parts: InputPart[], headers = '', requestId = 'r'): Job {
  return new Job(
    { requestId, modelName: 'm', method: 'handle', headers, parts },
    {
      whole: () => undefined,
      open: () => undefined,
      write: () => true,
      close: () => undefined,
      fail: () => undefined,
    },
  )
}

const NOTHING = Buffer.alloc(0)

test.each<[string, Job]>([
  ['data', job([{ name: '', data: Buffer.alloc(ALLOWANCE + 937) }])],
  ['a name, in UTF-8', job([{ name: '\ufffd'.repeat(ALLOWANCE / 2), data: NOTHING }])],
  ['a content type', job([{ name: '', contentType: 'x'.repeat(ALLOWANCE + 937), data: NOTHING }])],
  ['the number of parts', job(Array.from({ length: 10_000 }, () => ({ name: '', data: NOTHING })))],
  ['headers', job([], 'x'.repeat(ALLOWANCE + 1001))],
])('a request too large for a frame is refused before it waits: %s', (_what, large) => {
  const model = modelThatWaits()
  expect(() => model.submit(large)).toThrow(expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE' }))
  expect(model.queue.pending).toBe(0)
})

test('a request that just fits is taken', () => {
  const model = modelThatWaits()
  model.submit(job([{ name: '', data: Buffer.alloc(ALLOWANCE + 936) }]))
  expect(model.queue.pending).toBe(1)
})

test.each([
  [1, '1 request waits'],
  [2, '2 requests wait'],
])('a full queue of %d says that %s', (size, waiting) => {
  const model = modelThatWaits(size)
  for (let count = 0; count < size; count += 1) model.submit(job([], '', `r${count}`))
  expect(() => model.submit(job([]))).toThrow(
    `The queue of model "m" is full: ${waiting} for a worker. Retry`,
  )
})

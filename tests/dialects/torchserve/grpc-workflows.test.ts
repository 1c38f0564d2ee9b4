import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { Job } from '../../../frontend/jobs/job.ts'
import { ServeError } from '../../../common/errors.ts'
import { readAll } from '../../support/grpc-clients.ts'
import {
  failure,
  predictWith,
  REQUEST,
  type RunningGrpc,
  startGrpc,
  streamWith,
  text,
} from '../../edge/grpc/start-grpc.ts'

const STORY = { ...REQUEST, model_name: 'story' }

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
  grpc.workflows.onJob = (job: Job) => {
    job.started({ abandon: () => undefined, drained: () => undefined })
    job.respond({ status: 200, headers: {}, body: Buffer.from('a'), more: true })
    job.item(Buffer.from('b'), 0, 1)
    job.finish()
  }
})

afterEach(() => grpc.close())

function noModel(): void {
  grpc.models.failure = new ServeError('MODEL_NOT_FOUND', 'Model not found: story')
}

test('a name that no model has is a workflow’s', async () => {
  noModel()
  const { messages, error } = await readAll(streamWith(grpc, STORY))
  expect([error, text(messages)]).toEqual([undefined, ['a', 'b']])
  expect((await predictWith(grpc, STORY)).prediction.toString()).toBe('ab')
})

test('a model of that name comes first', async () => {
  expect((await predictWith(grpc, STORY)).prediction.toString()).toBe('ok')
})

test('a version means a model, and other failures of models are no question of names', async () => {
  noModel()
  const versioned = await failure(predictWith(grpc, { ...STORY, model_version: '1.0' }))
  expect(versioned.details).toContain('Model not found: story')
  grpc.models.failure = new ServeError('QUEUE_FULL', 'full')
  expect((await failure(predictWith(grpc, STORY))).details).toContain('full')
})

test('a name that neither has is an unknown model', async () => {
  grpc.models.failure = new ServeError('MODEL_NOT_FOUND', 'Model not found: none')
  expect((await failure(predictWith(grpc, { ...REQUEST, model_name: 'none' }))).details).toContain(
    'Model not found: none',
  )
})

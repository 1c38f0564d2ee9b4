import { expect, jest, test } from '@jest/globals'
import type { HttpCall } from '../../../frontend/edge/http/http-call.ts'
import { Job } from '../../../frontend/jobs/job.ts'
import type { JobRequest } from '../../../frontend/jobs/job-request.ts'
import { JobGroup } from '../../../frontend/dialects/openai/job-group.ts'
import { RecordingSink } from '../../support/jobs.ts'

test('room at the client is told to every job of the request', () => {
  const models = { submit: () => undefined }
  const job = (request: JobRequest, sink: RecordingSink): Job => new Job(request, sink)
  const group = new JobGroup({ models, requestId: 'r', job } as unknown as HttpCall, { modelName: 'm' })
  const told = [1, 2].map(() => jest.spyOn(group.submit([], new RecordingSink()), 'drained'))
  group.drained()
  expect(told.map(({ mock }) => mock.calls.length)).toEqual([1, 1])
})

import { expect, jest, test } from '@jest/globals'
import type { OpenAICall } from '../../../frontend/dialects/openai/call.ts'
import { JobGroup } from '../../../frontend/dialects/openai/job-group.ts'
import { RecordingSink } from '../../support/jobs.ts'

test('room at the client is told to every job of the request', () => {
  const models = { submit: () => undefined }
  const call = { exchange: { models }, facts: { requestId: 'r', modelName: 'm', headers: '' } }
  const group = new JobGroup(call as unknown as OpenAICall)
  const told = [1, 2].map(() => jest.spyOn(group.submit([], new RecordingSink()), 'drained'))
  group.drained()
  expect(told.map(({ mock }) => mock.calls.length)).toEqual([1, 1])
})

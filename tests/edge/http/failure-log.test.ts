import { expect, test } from '@jest/globals'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { ServeError } from '../../../common/errors.ts'
import { ask, startRig } from '../../support/http/rig.ts'

const TENSORS = { inputs: [{ name: 'x', shape: [1], datatype: 'INT32', data: [1] }] }
const PROMPT = { model: 'bug', prompt: 'x' }
const MESSAGES = { model: 'bug', messages: [{ role: 'user', content: 'x' }] }

test.each([
  ['/predictions/bug', {}],
  ['/v2/models/bug/infer', TENSORS],
  ['/v2/models/bug/infer_stream', TENSORS],
  ['/v2/models/bug/generate', { text_input: 'x' }],
  ['/v2/repository/index', {}],
  ['/v2/repository/models/bug/load', {}],
  ['/v1/completions', PROMPT],
  ['/v1/chat/completions', MESSAGES],
])('%s: an unexpected error is told without its cause, which is one line in the log', async (path, body) => {
  const rig = await startRig(createInferenceApp, { openInferenceProtocol: true })
  const bug = (): Promise<never> => Promise.reject(new TypeError('secret detail'))
  rig.models.repository.index = bug
  rig.models.repository.load = bug
  const answer = await ask(rig, path, { method: 'POST', body: JSON.stringify(body) })
  expect(answer.status).toBe(500)
  expect(answer.text).toContain('Internal server error')
  expect(answer.text).not.toContain('secret detail')
  const requestId = answer.headers.get('x-request-id')
  const detail = expect.stringMatching(/^TypeError: secret detail\n +at /)
  expect(rig.logged).toEqual([[expect.objectContaining({ requestId, detail }), 'Internal server error']])
})

test.each([
  ['/predictions/m', {}],
  ['/v2/models/m/infer_stream', TENSORS],
  ['/v1/completions', { ...PROMPT, model: 'm', stream: true }],
  ['/v1/completions', { ...PROMPT, model: 'native', stream: true }],
])('%s: so is one after the first item of a stream', async (path, body) => {
  const rig = await startRig(createInferenceApp, { openInferenceProtocol: true })
  rig.models.onJob = (job) => {
    rig.models.start(job)
    job.respond({ status: 200, headers: {}, body: Buffer.from('{"choices":[]}'), more: true })
    job.fail(ServeError.from(new TypeError('secret detail')))
  }
  await ask(rig, path, { method: 'POST', body: JSON.stringify(body) }).catch(() => undefined)
  const detail = expect.stringContaining('secret detail')
  expect(rig.logged).toEqual([[expect.objectContaining({ detail }), 'Internal server error']])
})

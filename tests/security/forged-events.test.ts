import { expect, test } from '@jest/globals'
import { createInferenceApp } from '../../frontend/dialects/rest-apps.ts'
import { ask, startRig } from '../support/http/rig.ts'

const FORGED = '{"a":1}\r\rdata: forged\r\n\r\nevent: x\n\ndata: forged'

test.each(['native', 'body'])('no line end in an item of a %s handler begins an event', async (kind) => {
  const rig = await startRig(createInferenceApp)
  if (kind === 'native') rig.models.methods = ['chatCompletions']
  rig.models.onJob = (job) => {
    rig.models.start(job)
    const item = Buffer.from(kind === 'native' ? FORGED : FORGED.replaceAll('\n', '\r'))
    job.respond({ status: 200, headers: {}, body: item, more: true })
    job.respond({ status: 200, headers: {}, body: item, more: true })
    job.respond({ status: 200, headers: {}, body: Buffer.alloc(0), more: false })
  }
  const body = JSON.stringify({ model: 'body', stream: true, messages: [{ role: 'user', content: 'x' }] })
  const { text } = await ask(rig, '/v1/chat/completions', { method: 'POST', body })
  expect(text).toContain('forged')
  const events = text.split(/\r\n|\r|\n/).filter((line) => line !== '')
  expect(events.filter((line) => /^(data: forged|event:)/.test(line))).toEqual([])
})

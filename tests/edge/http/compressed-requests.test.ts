import { deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from '@jest/globals'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { splitHeaders } from '../../../common/headers.ts'
import { ask, startRig, type Answer, type Rig } from '../../support/http/rig.ts'

const LIMIT = 10_000
const TENSORS = JSON.stringify({ inputs: [{ name: 'x', shape: [1], datatype: 'INT32', data: [7] }] })
const CHAT = JSON.stringify({ model: 'body', messages: [{ role: 'user', content: 'x' }] })

async function listening(): Promise<Rig> {
  const rig = await startRig(createInferenceApp, { openInferenceProtocol: true, maxRequestSize: LIMIT })
  rig.models.onJob = (job) => job.respond({ status: 200, headers: {}, body: Buffer.from('{}') })
  return rig
}

/** Headers and the first input as the handler gets them. */
function seen({ models }: Rig): [encoding: string | undefined, kept: string | undefined, body: Buffer] {
  const { headers, parts } = models.jobs[0]!.request
  const { 'content-encoding': encoding, 'x-kept': kept } = splitHeaders(headers.toLowerCase())
  return [encoding, kept, Buffer.from(parts[0]!.data)]
}

function send(rig: Rig, path: string, body: Buffer, encoding: string): Promise<Answer> {
  const headers = { 'Content-Encoding': encoding, 'x-kept': 'kept' }
  return ask(rig, path, { method: 'POST', body: new Uint8Array(body), headers })
}

describe.each([
  ['/v1/chat/completions', CHAT, CHAT, 400],
  ['/v2/models/m/infer', TENSORS, '[7]', 422],
])('%s', (path, json, handed, unreadable) => {
  test.each([
    ['gzip', gzipSync(json)],
    ['GZIP', gzipSync(json)],
    ['deflate', deflateSync(json)],
  ])('takes a body in %s, and tells the handler nothing of it', async (encoding, body) => {
    const rig = await listening()
    expect((await send(rig, path, body, encoding)).status).toBe(200)
    const [said, kept, got] = seen(rig)
    expect([said, kept, got.toString()]).toEqual([undefined, 'kept', handed])
  })

  test('refuses what is larger once it is unpacked', async () => {
    const rig = await listening()
    const bomb = gzipSync(Buffer.alloc(100 * LIMIT, ' '))
    expect(bomb.byteLength).toBeLessThan(LIMIT)
    expect((await send(rig, path, bomb, 'gzip')).status).toBe(413)
    expect(rig.models.jobs).toEqual([])
  })

  test.each([
    ['gzip', unreadable, Buffer.from(json)],
    ['gzip', unreadable, gzipSync(json).subarray(0, 20)],
    ['br', 415, Buffer.from(json)],
    ['gzip, gzip', 415, gzipSync(gzipSync(json))],
  ])('refuses %s that it cannot read with %i', async (encoding, status, body) => {
    const rig = await listening()
    expect((await send(rig, path, body, encoding)).status).toBe(status)
    expect(rig.models.jobs).toEqual([])
  })
})

test('TorchServe’s routes hand a body on as it came, with its header', async () => {
  const rig = await listening()
  const packed = gzipSync('x')
  await send(rig, '/predictions/m', packed, 'gzip')
  expect(seen(rig)).toEqual(['gzip', 'kept', packed])
})

import { describe, expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import { bytes, startRig, Wire, type Rig } from '../../support/http/rig.ts'

const OK = { status: 200, headers: {} }
const item = (text: string, more = true) => ({ ...OK, body: bytes(text), more })
const failed = new ServeError('HANDLER_FAILED', 'Prediction failed')

async function startStream(
  method = 'POST',
  ...headers: string[]
): Promise<{ rig: Rig; wire: Wire; job: Job }> {
  const rig = await startRig(createInferenceApp)
  const next = rig.models.nextJob()
  const wire = new Wire(rig.listener.port).request(method, '/predictions/m', '{}', ...headers)
  const job = await next
  rig.models.start(job)
  return { rig, wire, job }
}

const bodyOf = (text: string): string => text.slice(text.indexOf('\r\n\r\n') + 4)

describe('a stream', () => {
  test('sends each item as its own chunk, also when many come in one turn', async () => {
    const { wire, job } = await startStream()
    for (const text of ['one', 'two', 'three']) job.respond(item(text))
    await wire.until('three')
    job.respond(item('four'))
    job.respond(item('five', false))
    const text = await wire.until('0\r\n\r\n')
    expect(bodyOf(text)).toBe('3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n4\r\nfour\r\n4\r\nfive\r\n0\r\n\r\n')
  })

  test('flushes its first item at once, with the head, in one go', async () => {
    const { rig, wire, job } = await startStream()
    job.respond({
      ...item('first'),
      status: 201,
      reason: 'Made',
      contentType: 'text/x',
      headers: { 'X-A': 'b' },
    })
    const text = await wire.until('first\r\n')
    expect(text).toMatch(/^HTTP\/1.1 201 Made\r\n/)
    for (const line of ['ts_stream_next: true', 'X-Accel-Buffering: no', 'content-type: text/x', 'X-A: b']) {
      expect(text).toContain(`\r\n${line}\r\n`)
    }
    expect(text).toContain('Transfer-Encoding: chunked')
    expect(text).toContain(`x-request-id: ${job.request.requestId}`)
    expect(rig.statuses).toEqual([201])
  })

  test('turns an empty first item into the head alone and an empty last one into no chunk', async () => {
    const { wire, job } = await startStream()
    job.respond(item(''))
    expect(bodyOf(await wire.until('\r\n\r\n'))).toBe('')
    job.respond(item('a'))
    await wire.until('1\r\na\r\n')
    job.respond(item('', false))
    expect(bodyOf(await wire.until('0\r\n\r\n'))).toBe('1\r\na\r\n0\r\n\r\n')
  })

  test('ignores head changes after its first item and keeps the connection', async () => {
    const { rig, wire, job } = await startStream()
    job.respond(item('a'))
    job.respond({ ...item('b', false), status: 500, headers: { late: '1' } })
    const text = await wire.until('0\r\n\r\n')
    expect(text).toMatch(/^HTTP\/1.1 200 /)
    expect(text).not.toContain('late')
    rig.models.onJob = (next) => next.respond({ ...OK, body: bytes('again') })
    wire.request('GET', '/predictions/m')
    await wire.until('again')
  })

  test('carries any bytes, small and large, unchanged', async () => {
    const { wire, job } = await startStream()
    const all = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const large = Buffer.alloc(70_000, all)
    job.respond({ ...OK, body: all, more: true })
    job.respond({ ...OK, body: new Uint8Array(large), more: true })
    job.respond({ ...OK, body: all.subarray(250), more: false })
    const text = await wire.until('\r\n0\r\n\r\n')
    const expected = ['100\r\n', all, '\r\n11170\r\n', large, '\r\n6\r\n', all.subarray(250), '\r\n0\r\n\r\n']
    expect(bodyOf(text) === expected.map((part) => part.toString('latin1')).join('')).toBe(true)
  })

  test('that fails before its first item gets a proper error', async () => {
    const { rig, wire, job } = await startStream()
    job.fail(failed)
    const text = await wire.rest()
    expect(text).toMatch(/^HTTP\/1.1 503 /)
    expect(bodyOf(text)).toBe(
      '{\n  "code": 503,\n  "type": "InternalServerException",\n  "message": "Prediction failed"\n}\n',
    )
    expect(rig.statuses).toEqual([503])
  })

  test('that fails later is broken off after what was sent, without a zero chunk', async () => {
    const { rig, wire, job } = await startStream()
    for (const text of ['a', 'b', 'c']) job.respond(item(text))
    job.fail(failed)
    expect(bodyOf(await wire.rest())).toBe('1\r\na\r\n1\r\nb\r\n1\r\nc\r\n')
    expect(rig.models.abandoned).toEqual([])
  })

  test('that fails later looks broken to fetch too', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => {
      rig.models.start(job)
      job.respond(item('a'))
    }
    const response = await fetch(`${rig.listener.address}/predictions/m`)
    rig.models.jobs[0]!.fail(failed)
    await expect(response.text()).rejects.toThrow()
  })

  test('tells the holder when the connection is full, and again when it has room', async () => {
    const { rig, wire, job } = await startStream()
    job.respond(item('start'))
    await wire.until('start')
    wire.socket.pause()
    const block = Buffer.alloc(65_536)
    let sent = 0
    while (job.respond({ ...OK, body: block, more: true })) {
      if ((sent += block.byteLength) > 64_000_000) throw new Error('never full')
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(rig.models.drainedJobs).toEqual([])
    wire.socket.resume()
    await rig.models.until(() => rig.models.drainedJobs.length > 0)
    expect(rig.models.drainedJobs[0]).toBe(job)
    job.respond(item('end', false))
    await wire.until('0\r\n\r\n')
  })

  test('of many tiny items in one turn is full too', async () => {
    const { rig, wire, job } = await startStream()
    let room = true
    let count = 0
    for (; room && count < 100_000; count++) room = job.respond(item('tiny'))
    expect(room).toBe(false)
    await rig.models.until(() => rig.models.drainedJobs.length > 0)
    job.respond(item('', false))
    const text = await wire.until('0\r\n\r\n')
    expect(text.split('4\r\ntiny\r\n').length - 1).toBe(count)
  })

  test('to a client of HTTP/1.0 is bare bytes and then the end', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => {
      rig.models.start(job)
      job.respond(item('a'))
      job.respond(item('b', false))
    }
    const text = await new Wire(rig.listener.port).send('GET /predictions/m HTTP/1.0\r\n\r\n').rest()
    expect(text).not.toContain('chunked')
    expect(text).toContain('connection: close')
    expect(bodyOf(text)).toBe('ab')
  })

  test('on a pipelined request begins after the answer before it, and fails by itself', async () => {
    const rig = await startRig(createInferenceApp)
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m').request('GET', '/predictions/m')
    await rig.models.until(() => rig.models.jobs.length === 1)
    const [first] = rig.models.jobs as [Job]
    rig.models.start(first)
    first.respond({ ...OK, body: bytes('first') })
    await rig.models.until(() => rig.models.jobs.length === 2)
    const [, second] = rig.models.jobs as [Job, Job]
    rig.models.start(second)
    second.respond(item('second'))
    second.fail(failed)
    const text = await wire.rest()
    expect(text).toContain('first')
    expect(text).toMatch(/6\r\nsecond\r\n$/)
  })
})

describe('a plain answer', () => {
  test('has a length, no content type of its own, and every common header', async () => {
    const { wire, job } = await startStream()
    job.respond({ ...OK, body: bytes('hello') })
    const text = await wire.until('hello')
    for (const line of [
      'content-length: 5',
      'Pragma: no-cache',
      'Cache-Control: no-cache; no-store, must-revalidate, private',
      'Expires: Thu, 01 Jan 1970 00:00:00 UTC',
      'connection: keep-alive',
    ]) {
      expect(text).toContain(`\r\n${line}\r\n`)
    }
    expect(text.toLowerCase()).not.toContain('\r\ncontent-type')
    expect(text).not.toContain('ts_stream_next')
  })

  test('is also what a stream that ends with its first item becomes', async () => {
    const { wire, job } = await startStream()
    job.respond(item('all', false))
    expect(await wire.until('all')).toContain('content-length: 3')
  })

  test('with a status of 400 or more carries the body of the handler and closes', async () => {
    const { wire, job } = await startStream()
    job.respond({ status: 418, reason: 'Tea', headers: {}, body: bytes('short and stout') })
    const text = await wire.rest()
    expect(text).toMatch(/^HTTP\/1.1 418 Tea\r\n/)
    expect(text).toContain('connection: close')
    expect(bodyOf(text)).toBe('short and stout')
  })

  test('to HEAD has no body, and to 204 neither body nor length', async () => {
    const rig = await startRig(createInferenceApp)
    let status = 200
    rig.models.onJob = (job) => job.respond({ status, headers: {}, body: bytes('hidden') })
    const wire = new Wire(rig.listener.port).request('HEAD', '/predictions/m')
    expect(await wire.until('\r\n\r\n')).toContain('content-length: 6')
    status = 204
    wire.request('GET', '/predictions/m')
    const text = await wire.until('HTTP/1.1 204')
    status = 200
    wire.request('GET', '/predictions/m')
    await wire.until('hidden')
    expect(text.split('hidden').length).toBe(1)
  })

  test('does not let handler headers govern the connection or the framing', async () => {
    const { wire, job } = await startStream()
    const headers = {
      'Transfer-Encoding': 'chunked',
      'Content-Length': '9999',
      Connection: 'upgrade',
      Upgrade: 'x',
      'X-Request-ID': 'mine',
      'cache-control': 'public',
      'Content-Type': 'text/b',
    }
    job.respond({ ...OK, headers, contentType: 'text/a', body: bytes('safe') })
    const text = await wire.until('safe')
    expect(text).toContain('content-length: 4')
    expect(text).toContain('content-type: text/a')
    expect(text).not.toMatch(/9999|upgrade|mine|public|chunked|text\/b/i)
  })

  test.each([
    ['a header value with a line break', { headers: { evil: 'a\r\nSet-Cookie: b' } }],
    ['a header name with a space', { headers: { 'bad name': 'x' } }],
    ['an impossible status', { status: 1000 }],
    ['an interim status', { status: 101 }],
    ['a reason with a line break', { reason: 'a\r\nb: c' }],
  ])('with %s becomes an error', async (_what, part) => {
    for (const more of [undefined, true]) {
      const { rig, wire, job } = await startStream()
      job.respond({ ...OK, ...part, body: bytes('x'), more })
      const text = await wire.rest()
      expect(text).toMatch(/^HTTP\/1.1 503 /)
      expect(text).not.toContain('Set-Cookie')
      expect(rig.models.abandoned.length).toBe(more ? 1 : 0)
    }
  })

  test('carries the CORS headers unless the handler set its own', async () => {
    const rig = await startRig(createInferenceApp, { cors: 'https://a.test' })
    rig.models.onJob = (job) => job.respond({ ...OK, body: bytes('done') })
    const wire = new Wire(rig.listener.port).request('GET', '/predictions/m')
    expect(await wire.until('done')).toContain('access-control-allow-origin: https://a.test')
    rig.models.onJob = (job) =>
      job.respond({ ...OK, headers: { 'Access-Control-Allow-Origin': '*' }, body: bytes('other') })
    wire.received = ''
    wire.request('GET', '/predictions/m')
    expect(await wire.until('other')).not.toContain('a.test')
  })
})

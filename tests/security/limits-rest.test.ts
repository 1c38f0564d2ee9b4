import { expect, test } from '@jest/globals'
import type { RateLimits } from '../../frontend/auth/principal.ts'
import { RateLimiter } from '../../frontend/auth/rate-limiter.ts'
import { createInferenceApp, createManagementApp } from '../../frontend/dialects/rest-apps.ts'
import { ask, startRig, Wire, type Answer, type Rig } from '../support/http/rig.ts'
import { namedCallers } from '../support/named-callers.ts'

/** A listener whose clock stands still until the test moves it; every model answers at once. */
async function start(callers: Record<string, RateLimits | undefined>, create = createInferenceApp) {
  const clock = { now: 0 }
  const limiter = new RateLimiter({ key: {}, now: () => clock.now })
  const rig = await startRig(create, { limiter, authorizer: namedCallers(callers) })
  rig.models.onJob = (job) => {
    rig.models.start(job)
    job.respond({ body: Buffer.from('ok'), status: 200, headers: {} })
  }
  return { clock, rig }
}

function as(name: string, body?: string): RequestInit {
  const headers = { authorization: `Bearer ${name}` }
  return body === undefined ? { headers } : { method: 'POST', headers, body }
}

const predict = (rig: Rig, name: string, body = 'x'): Promise<Answer> =>
  ask(rig, '/predictions/m', as(name, body))

test('each dialect refuses with 429 and Retry-After in its own form', async () => {
  const { rig } = await start({ slow: { requestsPerSecond: 0.1 } })
  expect((await predict(rig, 'slow')).status).toBe(200)
  const message = 'Too many requests: this key may start 0.1 requests each second; try again in 10 s'
  const answers = async (path: string, body?: string) => {
    const { status, headers, json } = await ask(rig, path, as('slow', body))
    expect([path, status, headers.get('retry-after')]).toEqual([path, 429, '10'])
    return { json: json(), headers }
  }
  const torchserve = { code: 429, type: 'TooManyRequestsException', message }
  expect((await answers('/predictions/m', 'x')).json).toEqual(torchserve)
  expect((await answers('/ping')).json).toEqual(torchserve)
  expect((await answers('/v2/models/m/infer', '{}')).json).toEqual({ error: message })
  expect((await answers('/v2/health/ready')).json).toEqual({ error: message })
  const { json, headers } = await answers('/v1/chat/completions', '{"model":"m"}')
  expect(json).toEqual({ error: { message, type: 'requests', param: null, code: 'rate_limit_exceeded' } })
  expect(headers.get('retry-after-ms')).toBe('10000')
  expect(headers.get('x-should-retry')).toBeNull()
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  const management = await start({ slow: { requestsPerSecond: 0.1 } }, createManagementApp)
  expect((await ask(management.rig, '/models', as('slow'))).status).toBe(200)
  expect((await ask(management.rig, '/models', as('slow'))).json()).toEqual(torchserve)
})

test('OpenAI’s clients read what is left of every answer', async () => {
  const { rig } = await start({ some: { requestsPerSecond: 5 }, free: undefined })
  const { headers } = await ask(rig, '/v1/models', as('some'))
  expect(headers.get('x-ratelimit-limit-requests')).toBe('5')
  expect(headers.get('x-ratelimit-remaining-requests')).toBe('4')
  expect(headers.get('x-ratelimit-reset-requests')).toBe('0.2s')
  expect((await ask(rig, '/v1/models', as('free'))).headers.has('x-ratelimit-limit-requests')).toBe(false)
})

test('two keys of one address: what one may not do, the other still may', async () => {
  const { rig, clock } = await start({ limited: { requestsPerSecond: 5 }, free: undefined })
  const count = async (name: string): Promise<Map<number, number>> => {
    const statuses = new Map<number, number>()
    for (let i = 0; i < 60; i++) {
      const { status } = await predict(rig, name)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    return statuses
  }
  const [limited, free] = await Promise.all([count('limited'), count('free')])
  expect(Object.fromEntries(limited)).toEqual({ 200: 5, 429: 55 })
  expect(Object.fromEntries(free)).toEqual({ 200: 60 })
  clock.now += 1_000
  expect((await predict(rig, 'limited')).status).toBe(200)
})

test('a stream counts as open until its last item, or until its client has left', async () => {
  const { rig } = await start({ two: { concurrentStreams: 2 }, other: { concurrentStreams: 1 } })
  rig.models.onJob = undefined
  const open = async (): Promise<Wire> => {
    const wire = new Wire(rig.listener.port)
    const next = rig.models.nextJob()
    wire.request('POST', '/predictions/m', 'x', 'Authorization: Bearer two')
    const refused = wire.until(' 429 ').then(() => Promise.reject(new Error('It was refused')))
    refused.catch(() => undefined)
    const job = await Promise.race([next, refused])
    rig.models.start(job)
    job.respond({ body: Buffer.from('item'), more: true, status: 200, headers: {} })
    await wire.until('item')
    return wire
  }
  const first = await open()
  await open()
  const refused = await predict(rig, 'two')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect((await ask(rig, '/ping', as('other'))).status).toBe(200)
  first.socket.destroy()
  await rig.models.until(() => rig.models.abandoned.length === 1)
  await open()
  expect((await predict(rig, 'two')).status).toBe(429)
  const last = rig.models.jobs.at(-1)!
  last.respond({ body: Buffer.from('end'), more: false, status: 200, headers: {} })
  await open()
})

test('bytes of requests and responses are paid after they have moved, by their own key only', async () => {
  const { rig, clock } = await start({ a: { bytesPerSecond: 1_000 }, b: { bytesPerSecond: 1_000 } })
  expect((await predict(rig, 'a', 'x'.repeat(50_000))).status).toBe(200)
  const refused = await predict(rig, 'a')
  expect(refused.status).toBe(429)
  const seconds = Number(refused.headers.get('retry-after'))
  expect(seconds).toBeGreaterThanOrEqual(50)
  expect(seconds).toBeLessThan(51)
  expect((await predict(rig, 'b')).status).toBe(200)
  clock.now += seconds * 1_000
  expect((await predict(rig, 'a')).status).toBe(200)
  clock.now += 10_000
  rig.models.onJob = (job) => {
    rig.models.start(job)
    job.respond({ body: Buffer.alloc(30_000), status: 200, headers: {} })
  }
  expect((await predict(rig, 'a')).text).toHaveLength(30_000)
  expect(Number((await predict(rig, 'a')).headers.get('retry-after'))).toBeGreaterThanOrEqual(29)
})

test('an upload in chunks counts too, and so does a connection that several keys share', async () => {
  const { rig } = await start({ a: { bytesPerSecond: 100_000 }, free: undefined })
  rig.models.onJob = (job) => {
    rig.models.start(job)
    const body = Buffer.alloc(job.request.headers.includes('free') ? 40_000 : 1, 'y')
    job.respond({ body: Buffer.concat([body, Buffer.from('ok')]), status: 200, headers: {} })
  }
  const wire = new Wire(rig.listener.port)
  const piece = 'x'.repeat(40_000)
  for (const name of ['free', 'free', 'free', 'a']) {
    wire.received = ''
    wire.request('POST', '/predictions/m', piece, `Authorization: Bearer ${name}`)
    await wire.until('ok')
  }
  const sent = (name: string): string =>
    `POST /predictions/m HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${name}\r\nTransfer-Encoding: chunked\r\n\r\n`
  const chunked = `9c40\r\n${piece}\r\n9c40\r\n${piece}\r\n0\r\n\r\n`
  wire.received = ''
  wire.send(sent('a') + chunked)
  expect(await wire.until('ok')).toContain('200 ')
  expect((await predict(rig, 'a')).status).toBe(429)
})

test('a key is counted for a wrong method and for a path that is malformed, too', async () => {
  for (const [method, path, status] of [
    ['OPTIONS', '/v1/models', 405],
    ['GET', '/%', 400],
  ] as const) {
    const { rig } = await start({ slow: { requestsPerSecond: 0.1 } })
    expect((await ask(rig, path, { ...as('slow'), method })).status).toBe(status)
    expect((await predict(rig, 'slow')).status).toBe(429)
  }
})

import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { writeApiKeys } from '../support/api-keys.ts'
import { COUNT, countBody, ECHO, ended, next, produced } from '../support/count.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, rawRequest, type RawRequestOptions, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

/** The inference API that the console's page uses: below /console/play of the management listener. */

const PACED = `paced=${join(REPOSITORY, 'tests', 'support', 'handlers', 'paced-chat')}`
const PLAY = '/console/play'

describe('on a server without tokens', () => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({
      models: [ECHO, COUNT, PACED, modelFolder('heads', 'heads', {})],
      config: { ts_open_inference_protocol: true, max_request_size: 20_000 },
    })
    for (const model of ['echo', 'count', 'paced', 'heads']) await server.ready(model)
  })

  test('a stream passes item by item, and the handler stops when its client leaves', async () => {
    const run = countBody({ id: 'played', n: 100, gated: true })
    const stream = new RawRequest(server.ports.management, `${PLAY}/predictions/count`, run)
    for (let item = 1; item <= 3; item++) {
      await server.until(
        () => produced(server, 'played'),
        ({ state }) => state === 'running',
      )
      await next(server, 'played')
      await stream.gotChunks(item)
    }
    stream.destroy()
    expect(await ended(server, 'played')).toMatchObject({ state: 'cancelled' })
  })

  const JSON_TYPE = { 'content-type': 'application/json' }
  const TENSOR = { name: 'x', shape: [2], datatype: 'INT32', data: [1, 2] }
  const ASKED: [string, string, RawRequestOptions][] = [
    ['a prediction', '/predictions/echo', { body: 'hello' }],
    [
      'a form',
      '/predictions/echo?a=1',
      { body: 'a=b', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    ],
    ['a ping', '/ping', { method: 'GET' }],
    ['a model that is not there', '/predictions/ecko', { body: 'x' }],
    ['a body over the limit', '/predictions/echo', { body: 'x'.repeat(30_000) }],
    ['a description of a model', '/predictions/echo', { method: 'OPTIONS' }],
    ['V2 metadata', '/v2/models/echo', { method: 'GET' }],
    [
      'V2 inference',
      '/v2/models/echo/infer',
      { body: JSON.stringify({ inputs: [TENSOR] }), headers: JSON_TYPE },
    ],
    ['V2 with a wrong body', '/v2/models/echo/infer', { body: '{', headers: JSON_TYPE }],
    ['a list of models for OpenAI', '/v1/models', { method: 'GET' }],
    [
      'a chat',
      '/v1/chat/completions',
      {
        body: JSON.stringify({ model: 'paced', messages: [{ role: 'user', content: 'Hi' }] }),
        headers: JSON_TYPE,
      },
    ],
    ['an unknown path of OpenAI', '/v1/nothing', { method: 'GET' }],
    ['percent signs', '/predictions/echo%2F1.0', { body: 'x' }],
  ]

  test.each(ASKED)('%s is answered as on the inference port', async (_what, path, options) => {
    const here = await rawRequest(server.ports.management, `${PLAY}${path}`, options)
    const there = await rawRequest(server.ports.inference, path, options)
    expect(comparable(here)).toEqual(comparable(there))
    expect(here.status).not.toBe(0)
  })

  test('a page of another site gets nothing, as from the rest of the management API', async () => {
    const { status, body } = await rawRequest(server.ports.management, `${PLAY}/predictions/echo`, {
      headers: { origin: 'https://evil.example' },
    })
    expect([status, body]).toEqual([403, expect.stringContaining('https://evil.example')])
  })

  test('a page of a handler runs no scripts here, whatever policy the handler sets', async () => {
    const own = "script-src 'unsafe-inline'"
    const headers = { 'content-type': 'text/xml', 'content-security-policy': own }
    const body = JSON.stringify({ headers, text: '<a/>' })
    const policy = async (port: number, path: string): Promise<unknown> =>
      (await rawRequest(port, path, { body })).headers['content-security-policy']
    expect(await policy(server.ports.inference, '/predictions/heads')).toBe(own)
    const here = await policy(server.ports.management, `${PLAY}/predictions/heads`)
    expect(here).toMatch(/^default-src 'none'.* sandbox$/)
  })

  test('an unknown path is named, below /v2 as its clients expect it', async () => {
    const bodies = ['/none', '/v2/none/of/this'].map(
      async (path) => (await rawRequest(server.ports.management, `${PLAY}${path}`, { method: 'GET' })).body,
    )
    const answers = (await Promise.all(bodies)).map((body): unknown => JSON.parse(body))
    expect(answers).toEqual([
      { code: 404, type: 'ResourceNotFoundException', message: 'The inference API has no path /none' },
      expect.objectContaining({ error: 'The inference API has no path /v2/none/of/this' }),
    ])
  })

  test('the inference port has no such paths', async () => {
    const { status } = await rawRequest(server.ports.inference, `${PLAY}/predictions/echo`, { body: 'x' })
    expect(status).toBe(404)
  })
})

/** Without what differs from request to request. */
function comparable({ status, headers, body }: RawResponse): unknown {
  const names = Object.keys(headers).sort()
  const text = body
    .replaceAll(/[0-9a-f]{8}-?[0-9a-f-]{23,27}/g, 'ID')
    .replaceAll(PLAY, '')
    .replaceAll(/"created":\s*\d+/g, '"created"')
  return { status, names, type: headers['content-type'], text }
}

describe('on a server with keys', () => {
  const SCOPES = { user: ['inference'], operator: ['management'], both: ['inference', 'management'] }
  let server: Server

  beforeAll(async () => {
    const keys = writeApiKeys(Object.entries(SCOPES).map(([name, scopes]) => ({ name, scopes })))
    server = await startServer({
      models: [ECHO],
      flags: ['--enable-model-api'],
      config: { api_keys_file: keys },
    })
    await server.until(
      () => ask('/models/echo', 'operator', 'GET'),
      ({ body }) => body.includes('"READY"'),
    )
  })

  function ask(path: string, caller?: keyof typeof SCOPES, method = 'POST'): Promise<RawResponse> {
    const headers: Record<string, string> =
      caller === undefined ? {} : { authorization: `Bearer tsk_${caller}` }
    return rawRequest(server.ports.management, path, { method, headers, body: method === 'GET' ? '' : 'x' })
  }

  test('it needs the scope inference', async () => {
    const path = `${PLAY}/predictions/echo`
    // TorchServe's status for a wrong or missing token.
    const answers = await Promise.all([
      ask(path),
      ask(path, 'operator'),
      ask(path, 'user'),
      ask(path, 'both'),
    ])
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 200, 200])
    const unknown = await Promise.all([ask(`${PLAY}/none`), ask(`${PLAY}/none`, 'operator')])
    expect(unknown.map(({ status }) => status)).toEqual([400, 400])
  })

  test.each([
    PLAY,
    `${PLAY}/`,
    `${PLAY}/models`,
    `${PLAY}/models/echo`,
    `${PLAY}//models`,
    `${PLAY}/../models`,
    `${PLAY}/../../models`,
    `${PLAY}/%2e%2e/models`,
    `${PLAY}/%2e%2e%2f%2e%2e%2fmodels`,
    `${PLAY}/..;/models`,
    `${PLAY}${PLAY}/models`,
    `${PLAY}${PLAY}/ping`,
    `${PLAY}/events`,
    `${PLAY}/requests/1`,
    `${PLAY}/workflows`,
    `${PLAY}/token?type=management`,
    `${PLAY}/metrics`,
    `${PLAY}/console`,
    `/console%2Fplay/models`,
    `/Console/play/models`,
  ])('%s leads to nothing of the management API', async (path) => {
    for (const caller of ['user', 'both'] as const)
      for (const method of ['GET', 'POST']) {
        const { status } = await ask(path, caller, method)
        // What is no path below the playground is the management API's, which a user may not ask.
        const expected = caller === 'user' && path.startsWith('/C') ? 400 : 404
        expect([caller, method, status]).toEqual([caller, method, expected])
      }
  })
})

test('without the console there is none', async () => {
  const server = await startServer({ models: [ECHO], config: { enable_console: false } })
  await server.ready('echo')
  const { status } = await rawRequest(server.ports.management, `${PLAY}/predictions/echo`, { body: 'x' })
  expect(status).toBe(404)
})

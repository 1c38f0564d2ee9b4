import { connect } from 'node:http2'
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from '../../frontend/dialects/rest-apps.ts'
import { type ListenerKind, PageCheck, type PageSettings } from '../../frontend/edge/http/page-check.ts'
import type { ListenAddress } from '../../frontend/config/listen-address.ts'
import { ask, pageSettings, startRig, TCP, TLS } from '../support/http/rig.ts'
import { rawRequest } from '../support/raw-http.ts'
import { type Server, startServer } from '../support/server.ts'

const ANY: ListenAddress = { ...TCP, host: '0.0.0.0' }
const EVIL = 'https://evil.example.com'

/** Why a request with these headers is refused; undefined: it passes. */
function refusal(
  listener: ListenerKind,
  settings: Partial<PageSettings>,
  headers: Record<string, string>,
  address = TCP as ListenAddress,
  authority?: string,
): string | undefined {
  const all = { corsAllowedOrigin: undefined, ...pageSettings(address), ...settings }
  const check = new PageCheck(listener, all)
  try {
    check.check({ host: '127.0.0.1:8080', ...headers }, authority, { checkedHost: undefined })
    return undefined
  } catch (error) {
    return (error as Error).message
  }
}

const passes = (...request: Parameters<typeof refusal>): boolean => refusal(...request) === undefined

const LISTENERS = ['inference', 'management', 'shared', 'metrics'] as const

describe.each(LISTENERS)('%s', (listener) => {
  const managed = listener === 'management' || listener === 'shared'

  test.each([
    ['a foreign origin', { origin: EVIL }],
    ['a page in a sandbox or a file', { origin: 'null' }],
    ['an address of the internet', { origin: 'http://203.0.113.9' }],
    ['a name that ends like a local one', { origin: 'http://localhost.evil.example.com:8080' }],
    ['a name that begins like this server', { origin: 'http://127.0.0.1:8080.evil.example.com' }],
    ['user data before the host', { origin: 'http://127.0.0.1:8080@evil.example.com' }],
    ['a scheme that is not of the web', { origin: 'chrome-extension://127.0.0.1' }],
    ['a cross-site request without an origin', { 'sec-fetch-site': 'cross-site' }],
    ['a request from a subdomain without an origin', { 'sec-fetch-site': 'same-site' }],
    ['a value of Sec-Fetch-Site that is not known', { 'sec-fetch-site': 'Cross-Site' }],
    ['two values of Sec-Fetch-Site', { 'sec-fetch-site': 'same-origin, cross-site' }],
    ['an empty Sec-Fetch-Site', { 'sec-fetch-site': '' }],
    ['a fragment in the origin', { origin: 'http://evil.example.com#.localhost' }],
    ['two origins', { origin: 'http://localhost, http://evil.example.com' }],
    ['a rebound name', { origin: 'http://evil.example.com:8080', host: 'evil.example.com:8080' }],
  ])('refuses %s', (_name, headers) => {
    expect(passes(listener, {}, headers)).toBe(false)
    expect(passes(listener, {}, headers, ANY)).toBe(false)
    expect(passes(listener, { checkInferenceOrigin: false }, headers)).toBe(!managed)
  })

  test('without tokens, refuses a rebound name in a request without an origin', () => {
    for (const host of ['evil.example.com', 'evil.example.com:8080', '', 'localhost.evil.example.com']) {
      expect([host, passes(listener, {}, { host })]).toEqual([host, false])
      // Proxies and probes call by any name where the server listens for them.
      expect([host, passes(listener, {}, { host }, ANY)]).toEqual([host, !managed])
    }
  })

  test('takes its own pages, local pages, and clients that are no browsers', () => {
    const good: Record<string, string>[] = [
      {},
      { origin: 'http://127.0.0.1:8080', 'sec-fetch-site': 'same-origin' },
      { origin: 'http://localhost:3000' },
      { origin: 'http://[::1]:3000' },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-site': 'same-origin' },
      { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' },
      { host: 'LOCALHOST:8080' },
      { host: '[::1]:8080' },
      { host: '10.1.2.3:8080' },
      { host: 'torchserve:8080' },
      { host: 'model-predictor.models.svc.cluster.local' },
      { host: 'model-predictor.models.svc:8080' },
      { host: 'box.local', origin: 'http://box.local' },
    ]
    for (const headers of good) {
      for (const address of [TCP, ANY])
        expect([headers, passes(listener, {}, headers, address)]).toEqual([headers, true])
    }
  })

  test('with tokens, any name may be the server’s, which its pages share; foreign pages are refused', () => {
    const tokens = { disableTokenAuthorization: false }
    const host = 'models.example.com'
    expect(passes(listener, tokens, { host })).toBe(true)
    expect(passes(listener, tokens, { host, origin: `https://${host}` })).toBe(true)
    expect(passes(listener, tokens, { host, origin: EVIL })).toBe(false)
  })

  test('takes what is configured', () => {
    const cors = { corsAllowedOrigin: EVIL }
    expect(passes(listener, cors, { origin: EVIL })).toBe(true)
    expect(passes(listener, cors, { origin: `${EVIL}:444` })).toBe(false)
    expect(passes(listener, { corsAllowedOrigin: '*' }, { origin: 'null' })).toBe(true)
    const hosts = { allowedHosts: ['models.example.com', '*.apps.example.com'] }
    for (const host of ['models.example.com', 'a.apps.example.com:443']) {
      expect(passes(listener, hosts, { host, origin: `https://${host}` })).toBe(true)
    }
    for (const host of ['other.example.com', 'evilapps.example.com', 'apps.example.com'])
      expect(passes(listener, hosts, { host })).toBe(false)
    const any = { allowedHosts: ['*'] }
    expect(passes(listener, any, { host: 'other.example.com' })).toBe(true)
    expect(passes(listener, any, { host: 'other.example.com', origin: EVIL })).toBe(false)
  })
})

test.each([
  ['a name of a proxy', TCP, { host: 'public.name' }, 'allowed_hosts=public.name'],
  ['that name with a port', TCP, { host: 'Public.Name:8443' }, 'allowed_hosts=public.name'],
  [
    'a page of that name',
    ANY,
    { host: 'public.name', origin: 'https://public.name' },
    'allowed_hosts=public.name',
  ],
  ['a page behind a proxy that changes Host', TCP, { origin: EVIL }, `cors_allowed_origin=${EVIL}`],
  [
    'a page of another port of an address',
    ANY,
    { host: '203.0.113.9:8080', origin: 'http://203.0.113.9:3000' },
    'cors_allowed_origin=http://203.0.113.9:3000',
  ],
  ['a page without an origin', TCP, { 'sec-fetch-site': 'cross-site' }, 'cors_allowed_origin=*'],
  ['a page in a sandbox', TCP, { origin: 'null' }, 'cors_allowed_origin=*'],
] as const)('the message for %s has the line that allows it', (_name, address, headers, line) => {
  expect(refusal('inference', {}, headers, address)).toContain(`: the line ${line} in config.properties`)
  const [key, value] = line.split('=') as [string, string]
  const settings = key === 'allowed_hosts' ? { allowedHosts: [value] } : { corsAllowedOrigin: value }
  expect(passes('inference', settings, headers, address)).toBe(true)
})

test('the message does not tell which hosts are allowed already', () => {
  const allowedHosts = ['models.example.com']
  expect(refusal('management', { allowedHosts }, { host: 'public.name' })).toBe(
    'The host "public.name" is not known: the line allowed_hosts=...,public.name in config.properties allows it',
  )
})

test('the answer is 403 in the form of the API', async () => {
  const inference = await startRig(createInferenceApp)
  const headers = { origin: EVIL }
  const post = { method: 'POST', body: '{}', headers }
  for (const path of [
    '/predictions/m',
    '/ping',
    '/none',
    '/v1/chat/completions',
    '/v2/models/m/infer',
    '/v2',
  ]) {
    const { status, text } = await ask(inference, path, post)
    expect([path, status, text]).toEqual([path, 403, expect.stringContaining('evil.example.com')])
  }
  expect(inference.models.jobs).toEqual([])
  const openai = await ask(inference, '/v1/models', { headers })
  expect(JSON.parse(openai.text)).toMatchObject({ error: { type: 'permission_error', code: 'foreign_page' } })
  const v2 = await ask(inference, '/v2/models/m/infer', post)
  expect(Object.keys(JSON.parse(v2.text) as object)).toEqual(['error'])
  for (const [create, path] of [
    [createManagementApp, '/models'],
    [createSharedApp, '/models'],
    [createMetricsApp, '/metrics'],
  ] as const) {
    const { status, text } = await ask(await startRig(create), path, { headers })
    expect([status, JSON.parse(text)]).toEqual([403, expect.objectContaining({ type: 'ForbiddenException' })])
  }
})

test('OPTIONS is checked as every other method; a preflight of an allowed origin is answered', async () => {
  const ALLOWED = 'https://app.example.com'
  const ask2 = async (rig: Awaited<ReturnType<typeof startRig>>, path: string, origin: string) => {
    const headers = { origin, 'access-control-request-method': 'POST' }
    const answer = await ask(rig, path, { method: 'OPTIONS', headers })
    return [answer.status, answer.headers.get('access-control-allow-origin')]
  }
  for (const tokens of [false, true]) {
    const rig = await startRig(createInferenceApp, { cors: ALLOWED, tokens })
    for (const path of ['/v1/chat/completions', '/v1/models', '/openai/v1/x', '/v2/models/m/infer', '/']) {
      expect([path, (await ask2(rig, path, EVIL))[0]]).toEqual([path, 403])
    }
    expect(await ask2(rig, '/v1/chat/completions', ALLOWED)).toEqual([200, ALLOWED])
    expect(await ask2(rig, '/v1/chat/completions', 'http://localhost:3000')).toEqual([200, ALLOWED])
  }
})

test.each([
  ['an API keys file', { apiKeysFile: 'keys.json' }, TCP, true],
  ['JWTs', { jwtIssuer: 'https://issuer.example' }, TCP, true],
  ['a certificate that TLS requires', { tlsClientCa: 'ca.pem', tlsClientAuth: 'require' }, TLS, true],
  ['a certificate that TLS may do without', { tlsClientCa: 'ca.pem', tlsClientAuth: 'request' }, TLS, false],
  ['a certificate where there is no TLS', { tlsClientCa: 'ca.pem', tlsClientAuth: 'require' }, TCP, false],
] as const)('%s protects from rebound names as a token does: %#', (_name, identity, address, isSafe) => {
  const host = 'models.example.com'
  expect(passes('management', identity, { host }, address)).toBe(isSafe)
  expect(passes('management', identity, { host, origin: `https://${host}` }, address)).toBe(isSafe)
  expect(passes('management', identity, { host, origin: EVIL }, address)).toBe(false)
})

describe('a started server without tokens', () => {
  let server: Server

  beforeAll(async () => {
    server = await startServer()
  })

  test('registers no model for a page, neither by its origin nor by a rebound name', async () => {
    const path = '/models?url=m.mar&initial_workers=1'
    const pages: Record<string, string>[] = [
      { origin: EVIL, 'content-type': 'text/plain' },
      { host: `evil.example.com:${server.ports.management}` },
    ]
    for (const headers of pages) {
      const { status } = await rawRequest(server.ports.management, path, { headers })
      expect(status).toBe(403)
    }
    expect((await rawRequest(server.ports.management, path)).status).toBe(404)
  })

  test('a link of another site opens the console and the first page in a tab, and nothing else', async () => {
    const link = {
      accept: 'text/html',
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
      'sec-fetch-dest': 'document',
    }
    const status = async (path: string, headers: Record<string, string>, method = 'GET'): Promise<number> =>
      (await rawRequest(server.ports.management, path, { method, headers })).status
    expect(await status('/console', link)).toBe(200)
    expect(await status('/', link)).toBe(200)
    expect((await rawRequest(server.ports.inference, '/', { method: 'GET', headers: link })).status).toBe(200)
    for (const path of ['/models', '/console/play/predictions/m', '/console/app.js', '/events'])
      expect([path, await status(path, link)]).toEqual([path, 403])
    expect(await status('/console', link, 'POST')).toBe(403)
    expect(await status('/console', { ...link, 'sec-fetch-dest': 'iframe' })).toBe(403)
    expect(await status('/console', { ...link, 'sec-fetch-mode': 'no-cors' })).toBe(403)
    expect(await status('/console', { ...link, origin: EVIL })).toBe(403)
    expect(await status('/console', { ...link, host: 'evil.example.com' })).toBe(403)
  })

  test('a connection that was let in is checked again when its name or its page changes', async () => {
    const agent = fetch(`http://127.0.0.1:${server.ports.inference}/ping`)
    expect((await agent).status).toBe(200)
    const check = new PageCheck('inference', { corsAllowedOrigin: undefined, ...pageSettings() })
    const connection = { checkedHost: undefined }
    check.check({ host: 'localhost' }, undefined, connection)
    expect(() => check.check({ host: 'evil.example.com' }, undefined, connection)).toThrow('allowed_hosts')
    expect(() => check.check({ host: 'localhost', origin: EVIL }, undefined, connection)).toThrow(
      'cors_allowed_origin',
    )
  })

  test('gRPC needs no check: what a page can send without asking first is no call', async () => {
    const session = connect(`http://127.0.0.1:${server.ports.grpcManagement}`)
    const status = await new Promise((resolve, reject) => {
      session.once('error', reject)
      const call = session.request({
        ':method': 'POST',
        ':path': '/org.pytorch.serve.grpc.management.ManagementAPIsService/ListModels',
        'content-type': 'text/plain',
      })
      call.once('response', (headers) => resolve(headers[':status'])).once('error', reject)
      call.end(Buffer.alloc(5))
    })
    session.close()
    expect(status).toBe(415)
  })
})

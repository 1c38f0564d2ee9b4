import { status as Status } from '@grpc/grpc-js'
import { describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from '../../frontend/dialects/rest-apps.ts'
import { parseHost } from '../../frontend/edge/http/page-check.ts'
import { startGrpc } from '../edge/grpc/start-grpc.ts'
import { type Rig, startRig, Wire } from '../support/http/rig.ts'
import { grpcMessage, RawHttp2 } from '../support/raw-http2.ts'

const APPS = [createInferenceApp, createManagementApp, createSharedApp, createMetricsApp]
const PATHS = ['/ping', '/models', '/v1/models', '/v2', '/metrics', '/none', '/%', '/api-description']

/** The status of a request with exactly these lines, which closes its connection. */
async function statusOf(rig: Rig, ...lines: string[]): Promise<number> {
  const text = [...lines, 'Connection: close', '', ''].join('\r\n')
  const answer = await new Wire(rig.listener.port).send(text).rest()
  return Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
}

/** The statuses of one head on each path of each listener. */
async function everywhere(options: { tokens?: boolean }, ...lines: string[]): Promise<Set<number>> {
  const statuses = new Set<number>()
  for (const create of APPS) {
    const rig = await startRig(create, options)
    for (const path of PATHS) statuses.add(await statusOf(rig, `GET ${path} HTTP/1.1`, ...lines))
  }
  return statuses
}

/** Open Inference answers what Node.js lets through with 422, as every request that is not valid. */
const OURS = [400, 422]

describe('a header that proxies read in different ways is refused on every path of every listener', () => {
  test.each<[name: string, lines: string[], statuses?: number[]]>([
    ['two Host headers', ['Host: localhost', 'Host: evil.example.com'], OURS],
    ['two Host headers that are equal', ['Host: localhost', 'HOST: localhost'], OURS],
    ['no Host', ['Accept: */*'], OURS],
    ['a Host that is none', ['Host: evil#.localhost'], OURS],
    ['two tokens', ['Host: localhost', 'Authorization: Bearer a', 'authorization: Bearer b'], OURS],
    ['two lengths', ['Host: localhost', 'Content-Length: 1', 'Content-Length: 2']],
    ['a list of lengths', ['Host: localhost', 'Content-Length: 1, 1']],
    ['a length and chunks', ['Host: localhost', 'Content-Length: 5', 'Transfer-Encoding: chunked']],
    ['chunks and a length', ['Host: localhost', 'Transfer-Encoding: chunked', 'Content-Length: 5']],
    ['an encoding after chunks', ['Host: localhost', 'Transfer-Encoding: chunked, identity']],
    ['a blank before the colon', ['Host: localhost', 'Content-Length : 5']],
    ['a line that goes on', ['Host: localhost', 'X-A: b', ' Content-Length: 5']],
  ])('%s', async (_name, lines, statuses = [400]) => {
    expect(await everywhere({}, ...lines)).toEqual(new Set(statuses))
    expect(await everywhere({ tokens: true }, ...lines)).toEqual(new Set(statuses))
  })

  test('also behind more headers than Node keeps by default', async () => {
    const rig = await startRig(createInferenceApp)
    const fillers = Array.from({ length: 2_100 }, () => 'a:')
    expect(await statusOf(rig, 'GET /ping HTTP/1.1', 'Host: a', ...fillers)).toBe(200)
    expect(await statusOf(rig, 'GET /ping HTTP/1.1', 'Host: a', ...fillers, 'Host: b')).toBe(400)
  })
})

test('gRPC: two tokens are refused, whichever is right', async () => {
  const codes: number[] = []
  const accessLog = { grpc: (_peer: string, _path: string, code: number) => codes.push(code) }
  const grpc = await startGrpc({}, { accessLog: accessLog as never })
  const wire = new RawHttp2(grpc.bound.get('inference')!.port)
  for (const tokens of [['a'], ['a', 'b']]) {
    const pairs = tokens.map((token): [string, string] => ['authorization', `Bearer ${token}`])
    const stream = wire.call('/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping', pairs)
    if (tokens.length === 1) wire.data(stream, grpcMessage(Buffer.alloc(0)))
    wire.endStream(stream)
    await wire.until(() => wire.over(stream))
  }
  expect(codes).toEqual([Status.OK, Status.INVALID_ARGUMENT])
  await wire.destroy()
  await grpc.close()
})

test('a host is a name or an address of RFC 3986, with a port if need be', () => {
  const kinds = (...texts: string[]): unknown[] => texts.map((text) => parseHost(text)?.kind)
  expect(kinds('localhost', 'A.b-c:1', 'my_service', 'a.b.:80', 'a:')).toEqual(Array(5).fill('domain'))
  expect(kinds('127.0.0.1', '[::1]:8080', '[2001:db8::1]')).toEqual(Array(3).fill('address'))
  expect(kinds('', 'a%20b', 'a,b', 'a..b', '.a', 'a!.localhost', '127.0.0.1..')).toEqual(
    Array(7).fill('other'),
  )
  const none = [
    'evil#.localhost',
    'evil?.local',
    'a@b',
    'a b',
    'a/b',
    'a\\b',
    'a:b',
    'a:1:2',
    '[::1',
    '::1',
    '[a]',
  ]
  none.push('[1.2.3.4]', '[fe80::1%25eth0]', 'a%', 'a%zz', 'a"', 'a:123456', 'ä.local', 'a'.repeat(301))
  expect(none.filter((text) => parseHost(text) !== undefined)).toEqual([])
  expect(parseHost('LOCALHOST.:80')?.name).toBe('localhost')
})

describe('without tokens', () => {
  test.each([
    ['a fragment that ends like a local name', 'evil#.localhost', 400],
    ['a query that ends like a local name', 'evil?.local', 400],
    ['user data before a local name', 'evil.example.com@localhost', 400],
    ['signs that no name in DNS has', 'evil.example.com,a.localhost', 403],
    ['an escaped sign', 'evil.example.com%23.localhost', 403],
    ['an empty label', 'evil..localhost', 403],
    ['a name of somebody else', 'evil.example.com', 403],
    ['a local name', 'box.localhost:80', 200],
  ])('a host with %s is answered %s', async (_name, host, status) => {
    for (const create of [createInferenceApp, createManagementApp, createSharedApp, createMetricsApp]) {
      const rig = await startRig(create)
      const path = create === createMetricsApp ? '/metrics' : '/api-description'
      expect(await statusOf(rig, `GET ${path} HTTP/1.1`, `Host: ${host}`)).toBe(status)
      // The host of a whole URL counts, whatever Host says; it ends before a query.
      if (!host.includes('?'))
        expect(await statusOf(rig, `GET http://${host}${path} HTTP/1.1`, 'Host: localhost')).toBe(status)
    }
  })

  test('a whole URL with a known host is served, and Host is ignored', async () => {
    const rig = await startRig(createManagementApp)
    const get = 'GET http://localhost:81/models HTTP/1.1'
    expect(await statusOf(rig, get, 'Host: evil.example.com')).toBe(200)
    const page = 'Origin: http://evil.example.com'
    expect(await statusOf(rig, get, 'Host: evil.example.com', page)).toBe(403)
  })

  test('management answers no request without a host; inference does, as for old probes', async () => {
    const management = await startRig(createManagementApp)
    expect(await statusOf(management, 'GET /models HTTP/1.0')).toBe(403)
    expect(await statusOf(management, 'GET /models HTTP/1.0', 'Host: localhost')).toBe(200)
    expect(await statusOf(await startRig(createInferenceApp), 'GET /ping HTTP/1.0')).toBe(200)
    const token = 'Authorization: Bearer management'
    const withTokens = await startRig(createManagementApp, { tokens: true })
    expect(await statusOf(withTokens, 'GET /models HTTP/1.0', token)).toBe(200)
  })
})

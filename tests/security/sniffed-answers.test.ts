import { expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
} from '../../frontend/dialects/rest-apps.ts'
import { addHandlerHeaders } from '../../frontend/edge/http/safe-response.ts'
import { type Rig, startRig, TLS, Wire } from '../support/http/rig.ts'

/** The answers to these bytes: the status of each, and `safe` if browsers may not guess its type. */
async function heads(rig: Rig, sent: string, tls = false): Promise<string[]> {
  const text = await new Wire(rig.listener.port, { tls }).send(sent).rest()
  const answers = text.split(/(?=HTTP\/1\.1 \d)/).filter((answer) => !answer.startsWith('HTTP/1.1 100'))
  return answers.map((answer) => {
    const [head = ''] = answer.split('\r\n\r\n')
    const isSafe = head.toLowerCase().match(/\r\nx-content-type-options: nosniff/g)?.length === 1
    return `${head.slice(9, 12)} ${isSafe ? 'safe' : head}`
  })
}

function get(path: string, ...headers: string[]): string {
  return [`GET ${path} HTTP/1.1`, 'Host: test', 'Connection: close', ...headers, '', ''].join('\r\n')
}

test('no answer of any REST listener lets a browser guess its type', async () => {
  const inference = await startRig(createInferenceApp)
  expect(await heads(inference, get('/ping'))).toEqual(['200 safe'])
  expect(await heads(inference, get('/no/such/path'))).toEqual(['404 safe'])
  expect(await heads(inference, get('/v1/models'))).toEqual(['200 safe'])
  expect(await heads(inference, get('/v1/nothing'))).toEqual(['404 safe'])
  expect(await heads(inference, get('/v2/health/live'))).toEqual(['200 safe'])
  expect(await heads(inference, get('/v2/models/none'))).toEqual(['404 safe'])
  expect(await heads(inference, get('/%'))).toEqual([expect.stringMatching(/^4\d\d safe$/)])
  expect(await heads(inference, get('/', 'Content-Length: 999999999'))).toEqual(['413 safe'])
  const management = await startRig(createManagementApp, { tokens: true })
  expect(await heads(management, get('/models'))).toEqual(['400 safe'])
  expect(await heads(management, get('/models', 'Authorization: Bearer management'))).toEqual(['200 safe'])
  const metrics = await startRig(createMetricsApp)
  expect(await heads(metrics, get('/metrics'))).toEqual(['200 safe'])
})

test('nor does an answer that Node gives by itself', async () => {
  const rig = await startRig(createInferenceApp)
  expect(await heads(rig, 'no http\r\n\r\n')).toEqual(['400 safe'])
  expect(await heads(rig, 'GET / HTTP/1.1\r\n\r\n')).toEqual(['400 safe'])
  expect(await heads(rig, get('/ping', 'Expect: nonsense'))).toEqual(['417 safe'])
  const secure = await startRig(createInferenceApp, { address: TLS })
  expect(await heads(secure, get('/ping'))).toEqual(['403 safe'])
  expect(await heads(secure, get('/ping'), true)).toEqual(['200 safe'])
})

test.each([
  'text/html',
  'Text/HTML; charset=utf-8',
  'image/svg+xml',
  'text/xml',
  'application/rss+xml',
  'text/plain, text/html',
])(
  'a handler’s %s runs no scripts unless the handler says so, and none beside the management API',
  (contentType) => {
    const policies = (
      headers: Record<string, string>,
      type?: string,
      manages = false,
    ): (string | undefined)[] => {
      const flat: string[] = []
      addHandlerHeaders(flat, { status: 200, contentType: type, headers }, manages)
      return flat.filter((_, i) => flat[i - 1]?.toLowerCase() === 'content-security-policy')
    }
    expect(policies({}, contentType)).toEqual([expect.stringContaining("default-src 'none'")])
    expect(policies({ 'Content-Type': contentType })).toEqual([expect.stringContaining('sandbox')])
    const own = "default-src 'self'"
    expect(policies({ 'Content-Security-Policy': own }, contentType)).toEqual([own])
    expect(policies({ 'Content-Security-Policy': own }, contentType, true)).toEqual([
      expect.stringContaining('sandbox'),
    ])
    expect(policies({}, 'application/json')).toEqual([])
  },
)

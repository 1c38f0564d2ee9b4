import { once } from 'node:events'
import { connect } from 'node:tls'
import { Metadata } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, ECHO, ended, produced } from '../support/count.ts'
import { call, inferenceClient, inferenceV2Client } from '../support/grpc-clients.ts'
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { CERT, CERT_FILE, KEY_FILE } from '../support/tls/files.ts'

const SPAN_ID = 'b7ad6b7169203331'

const traceOf = (digit: string): string => digit.repeat(32)
const traceparent = (digit: string): string => `00-${traceOf(digit)}-${SPAN_ID}-01`

async function requestSpan(receiver: OtlpReceiver, digit: string): Promise<ReceivedSpan> {
  const spans = await receiver.trace(({ traceId, kind }) => traceId === traceOf(digit) && kind === 2)
  return spans.find(({ kind }) => kind === 2)!
}

describe('the span of a request', () => {
  const receiver = new OtlpReceiver()
  let server: Server

  beforeAll(async () => {
    server = await startServer({
      models: [COUNT, ECHO],
      config: { open_inference_grpc_port: 0 },
      env: await receiver.start(),
    })
    await Promise.all([server.ready('count'), server.ready('echo')])
  })

  const ask = (digit: string, headers: Record<string, string> = {}) =>
    rawRequest(server.ports.inference, '/predictions/echo', {
      body: 'hello',
      headers: { ...headers, traceparent: traceparent(digit) },
    })

  test('has the status of its answer, and no word of an end', async () => {
    await ask('1')
    const { attributes } = await requestSpan(receiver, '1')
    expect(attributes).toMatchObject({ 'http.response.status_code': 200, 'url.scheme': 'http' })
    expect(attributes).not.toHaveProperty(['torchserve_ts.response.complete'])
  })

  test('has no status if its client left before the answer, and says that there was no whole one', async () => {
    const { headers, body } = countBody({ id: 'left', n: 2, gated: true, stream: false })
    const request = new RawRequest(server.ports.inference, '/predictions/count', {
      headers: { ...headers, traceparent: traceparent('2') },
      body,
    })
    await server.until(
      () => produced(server, 'left'),
      ({ state }) => state === 'running',
    )
    request.destroy()
    expect(await ended(server, 'left')).toMatchObject({ state: 'cancelled' })
    const { attributes, status } = await requestSpan(receiver, '2')
    expect(attributes).toMatchObject({ 'torchserve_ts.response.complete': false })
    expect(attributes).not.toHaveProperty(['http.response.status_code'])
    expect(attributes).not.toHaveProperty(['error.type'])
    expect(status).toBe(0)
  })

  test('takes no value of a header for the name of one', async () => {
    // The first header after each is what a wrong reader would take for the value.
    const names = { 'x-a': 'user-agent', 'x-b': 'traceparent' }
    const answer = await ask('3', { ...names, 'user-agent': 'mine' })
    expect(answer.headers['traceresponse']).toContain(traceOf('3'))
    const { parentId, attributes } = await requestSpan(receiver, '3')
    expect([parentId, attributes['user_agent.original']]).toEqual([SPAN_ID, 'mine'])
  })

  test('is not made for what only watches: the metrics listener, and each probe of health', async () => {
    const { inference, metrics } = server.ports
    for (const [port, path, digit] of [
      [metrics, '/metrics', '4'],
      [metrics, '/nothing', '5'],
      [inference, '/ping', '6'],
      [inference, '/v2/health/live', '7'],
      [inference, '/v2/health/ready', '8'],
    ] as const) {
      const headers = { traceparent: traceparent(digit) }
      const answer = await rawRequest(port, path, { method: 'GET', headers })
      expect([path, answer.status, answer.headers['traceresponse']]).toEqual([
        path,
        path === '/nothing' ? 404 : 200,
        undefined,
      ])
    }
    const metadata = new Metadata()
    metadata.set('traceparent', traceparent('b'))
    const ours = inferenceClient(server.ports.grpcInference)
    const v2 = inferenceV2Client(server.ports.openInference, 'mlserver')
    await call(ours, ours.Ping, {}, metadata)
    for (const rpc of ['ServerLive', 'ServerReady']) await call(v2, v2[rpc]!, {}, metadata)
    for (const each of [ours, v2]) each.close()
    // What came before it would have arrived.
    await ask('9')
    await requestSpan(receiver, '9')
    const unwanted = new Set(['4', '5', '6', '7', '8', 'b'].map(traceOf))
    expect(receiver.spans.filter(({ traceId }) => unwanted.has(traceId))).toEqual([])
  })
})

test('the span of a request over TLS says https', async () => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    models: [ECHO],
    config: {
      inference_address: 'https://127.0.0.1:0',
      certificate_file: CERT_FILE,
      private_key_file: KEY_FILE,
    },
    env: await receiver.start(),
  })
  await server.ready('echo')
  const socket = connect({ port: server.ports.inference, host: '127.0.0.1', ca: CERT })
  const closed = once(socket.resume(), 'close')
  socket.write(
    `GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\ntraceparent: ${traceparent('a')}\r\n\r\n`,
  )
  await closed
  const { attributes } = await requestSpan(receiver, 'a')
  expect(attributes).toMatchObject({ 'url.scheme': 'https', 'http.response.status_code': 404 })
})

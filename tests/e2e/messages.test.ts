import { once } from 'node:events'
import { connect } from 'node:net'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const LIMIT = 5_000
const ABSENT = 'Requested resource is not found, please refer to API document.'
const NOT_ALLOWED = 'Requested method is not allowed, please refer to API document.'

let server: Server
/** The model API and the tokens are as they are by default: off and on. */
let plain: Server

beforeAll(async () => {
  const config = { allowed_urls: 'http://127.0.0.1.*', max_request_size: LIMIT }
  ;[server, plain] = await Promise.all([
    startServer({ models: [ECHO], config }),
    startServer({ flags: ['--disable-token-auth'] }),
  ])
  await server.ready('echo')
})

type Row = [method: string, path: string, status: number, type: string, message: string]

async function expectError(port: number, [method, path, code, type, message]: Row): Promise<void> {
  const { status, body, headers } = await rawRequest(port, path, { method })
  expect({ status, ...(JSON.parse(body) as object) }).toEqual({ status: code, code, type, message })
  expect(headers['connection']).toBe('close')
  expect(body).toMatch(/^\{\n {2}"code": .*,\n {2}"type": .*,\n {2}"message": .*\n\}\n$/)
}

/**
 * TorchServe's messages (its Java exceptions) that need no special handler; failures.test.ts has the others.
 */
describe('TorchServe’s messages, word for word', () => {
  test.each<Row>([
    ['GET', '/nothing', 404, 'ResourceNotFoundException', ABSENT],
    ['GET', '/predictions', 404, 'ResourceNotFoundException', ABSENT],
    ['GET', '/', 405, 'MethodNotAllowedException', NOT_ALLOWED],
    ['GET', '/predictions/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['POST', '/invocations?model_name=none', 404, 'ModelNotFoundException', 'Model not found: none'],
    [
      'POST',
      '/predictions/echo/9',
      404,
      'ModelVersionNotFoundException',
      'Model version: 9 does not exist for model: echo',
    ],
  ])('inference: %s %s', async (...row) => {
    await expectError(server.ports.inference, row)
  })

  const NO_VERSION = 'Model version: 9 does not exist for model: echo'

  test.each<Row>([
    ['POST', '/models/echo', 405, 'MethodNotAllowedException', NOT_ALLOWED],
    ['PUT', '/models', 405, 'MethodNotAllowedException', NOT_ALLOWED],
    ['GET', '/models/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['PUT', '/models/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['DELETE', '/models/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['PUT', '/models/none/9/set-default', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['GET', '/models/echo/9', 404, 'ModelVersionNotFoundException', NO_VERSION],
    ['PUT', '/models/echo/9', 404, 'ModelVersionNotFoundException', NO_VERSION],
    ['DELETE', '/models/echo/9', 404, 'ModelVersionNotFoundException', NO_VERSION],
    [
      'PUT',
      '/models/echo/9/set-default',
      404,
      'ModelVersionNotFoundException',
      'Model version 9 does not exist for model echo',
    ],
    ['GET', '/v1/models/none', 404, 'ModelNotFoundException', 'Model not found: none'],
    ['POST', '/models', 400, 'BadRequestException', 'Parameter url is required.'],
    ['POST', '/models?url=', 404, 'ModelNotFoundException', 'empty url'],
    [
      'POST',
      '/models?url=../x.mar',
      404,
      'ModelNotFoundException',
      'Relative path is not allowed in url: ../x.mar',
    ],
    [
      'POST',
      '/models?url=https://elsewhere/x.mar',
      404,
      'ModelNotFoundException',
      'Given URL https://elsewhere/x.mar does not match any allowed URL(s)',
    ],
    ['POST', '/models?url=absent.mar', 404, 'ModelNotFoundException', 'Model not found at: absent.mar'],
    [
      'POST',
      '/models?url=http://127.0.0.1:1/x.mar',
      400,
      'DownloadArchiveException',
      'Failed to download archive from: http://127.0.0.1:1/x.mar',
    ],
    [
      'PUT',
      '/models/echo?min_worker=3&max_worker=1',
      400,
      'BadRequestException',
      'max_worker cannot be less than min_worker.',
    ],
  ])('management: %s %s', async (...row) => {
    await expectError(server.ports.management, row)
  })

  test.each<Row>([
    ['POST', '/models?url=x.mar', 405, 'MethodNotAllowedException', NOT_ALLOWED],
    ['DELETE', '/models/x', 405, 'MethodNotAllowedException', NOT_ALLOWED],
  ])('with the model API off: %s %s', async (...row) => {
    await expectError(plain.ports.management, row)
  })

  test('no model was loaded at the start, and /invocations names none', async () => {
    const row: Row = ['POST', '/invocations', 400, 'BadRequestException', 'Parameter model_name is required.']
    await expectError(plain.ports.inference, row)
  })

  test('a JSON body that is none', async () => {
    const headers = { 'content-type': 'application/json' }
    const { status, body } = await rawRequest(server.ports.management, '/models', { headers, body: '{bad' })
    expect([status, JSON.parse(body)]).toMatchObject([500, { code: 500, type: 'JsonSyntaxException' }])
  })
})

describe('the head of a request', () => {
  /** What the server writes until it closes the connection or has written `until`. */
  async function exchange(text: string, until?: string): Promise<string> {
    const socket = connect(server.ports.inference, '127.0.0.1')
    socket.write(text)
    let received = ''
    const ended = once(socket, 'end')
    await new Promise<void>((resolve) => {
      socket.on('data', (data: Buffer) => {
        received += data.toString()
        if (until !== undefined && received.includes(until)) resolve()
      })
      void ended.then(() => resolve())
    })
    if (until !== undefined && received.includes(until) && text.includes('100-continue')) {
      received = ''
      socket.write('hello')
      while (!received.includes('hello')) await once(socket, 'data')
    }
    socket.destroy()
    return received
  }

  const post = (...headers: string[]): string =>
    `${['POST /predictions/echo HTTP/1.1', 'Host: a', ...headers].join('\r\n')}\r\n\r\n`

  test('Expect: 100-continue is answered 100, and then the request is served', async () => {
    const text = post('Expect: 100-continue', 'Content-Length: 5')
    expect(await exchange(text, 'HTTP/1.1 100 Continue\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /)
  })

  test('Expect: 100-continue with too large a body is answered 413', async () => {
    const answer = await exchange(
      post('Expect: 100-continue', `Content-Length: ${LIMIT + 1}`, 'Connection: close'),
    )
    expect(answer).toMatch(/^HTTP\/1\.1 413 Request Entity Too Large\r\n/)
    expect(answer).toContain('"message": "The request is larger than max_request_size"')
  })

  test('another expectation is answered 417', async () => {
    expect(await exchange(post('Expect: miracles', 'Content-Length: 0', 'Connection: close'))).toMatch(
      /^HTTP\/1\.1 417 /,
    )
  })

  test.each([
    ['a head that is too long', post(`X: ${'x'.repeat(13_000)}`)],
    ['a request line that is too long', `GET /${'x'.repeat(13_000)} HTTP/1.1\r\nHost: a\r\n\r\n`],
    ['no HTTP', 'hello\r\n\r\n'],
  ])('%s is 400', async (_what, text) => {
    const answer = await exchange(text)
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/)
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toEqual({
      code: 400,
      type: 'BadRequestException',
      message: 'Invalid HTTP message.',
    })
  })

  test('TorchServe’s request line of 4 KiB and headers of 8 KiB fit together', async () => {
    const path = `/predictions/echo/1.0/${'p'.repeat(4_000)}`
    const text = `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\nX: ${'x'.repeat(8_000)}\r\n\r\n`
    expect(await exchange(text)).toMatch(/^HTTP\/1\.1 200 /)
  })
})

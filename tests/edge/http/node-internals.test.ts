import { createServer, get, IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { once } from 'node:events'
import { afterEach, describe, expect, test } from '@jest/globals'
import { stopParser } from '../../../frontend/edge/http/connection.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import type { ServerRequest } from '../../../frontend/edge/http/server-request.ts'

/** Node.js internals that the server uses. A failure here names the file that must change. */

let close = (): void => undefined
afterEach(() => close())

/** The bytes of one answer on a connection of its own. */
async function answer(
  version: string,
  method: string,
  reply: (res: ServerResponse) => void,
): Promise<string> {
  const server = createServer((_req: IncomingMessage, res) => reply(res))
  close = () => void server.close()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write(`${method} / HTTP/${version}\r\nHost: a\r\nConnection: close\r\n\r\n`)
  let text = ''
  for await (const piece of socket) text += String(piece)
  return text
}

describe('chunkedEncoding of a response (frontend/edge/http/chunk-writer.ts)', () => {
  test.each([
    ['1.1', 'GET', true],
    ['1.0', 'GET', false],
    ['1.1', 'HEAD', false],
  ])('after writeHead says whether Node frames the body: HTTP/%s %s', async (version, method, frames) => {
    let seen: unknown
    await answer(version, method, (res) => {
      res.writeHead(200, ['a', 'b'])
      seen = res.chunkedEncoding
      res.end()
    })
    expect(seen).toBe(frames)
  })

  test('set to false lets the bytes through as they are, below the head of a chunked answer', async () => {
    const text = await answer('1.1', 'GET', (res) => {
      res.writeHead(200, ['a', 'b'])
      res.chunkedEncoding = false
      res.write('1\r\nx\r\n', 'latin1')
      res.end('0\r\n\r\n', 'latin1')
    })
    expect(text).toContain('Transfer-Encoding: chunked\r\n')
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe('1\r\nx\r\n0\r\n\r\n')
  })
})

test('_header of a response is the text of its head after writeHead (frontend/edge/http/chunk-writer.ts)', async () => {
  let seen: unknown
  const text = await answer('1.1', 'GET', (res) => {
    res.writeHead(200, ['a', 'b'])
    seen = (res as { _header?: unknown })._header
    res.end()
  })
  expect(seen).toBe(text.slice(0, text.indexOf('\r\n\r\n') + 4))
})

test('an https server has one connection listener, which begins TLS (frontend/edge/http/bare-answer.ts)', async () => {
  const server = createTlsServer()
  close = () => void server.close()
  const [begin, ...others] = server.listeners('connection')
  expect([typeof begin, others]).toEqual(['function', []])
  server.removeAllListeners('connection')
  const seen = once(server, 'connection')
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const request = get({ port: (server.address() as AddressInfo).port, host: '127.0.0.1' }).on(
    'error',
    () => undefined,
  )
  const [socket] = (await seen) as [NodeJS.Socket & { destroy(): void }]
  // Calls the listener directly with the plain bytes of an HTTP request, which only TLS rejects.
  const failed = once(server, 'tlsClientError')
  ;(begin as (socket: unknown) => void).call(server, socket)
  expect(String((await failed)[0])).toMatch(/http request|wrong version/i)
  request.destroy()
})

test('onIncoming of a parser ends the parsing of what was read (frontend/edge/http/connection.ts)', async () => {
  let requests = 0
  const server = createServer((req) => {
    requests += 1
    stopParser(req.socket)
    setImmediate(() => req.socket.destroy())
  })
  close = () => void server.close()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(100))
  await once(socket, 'close')
  expect(requests).toBe(1)
})

test('_httpMessage of a socket is the next response, and incoming of its parser the last request (frontend/edge/http/bare-answer.ts)', async () => {
  const responses: ServerResponse[] = []
  const server = createServer((_req, res) => void responses.push(res))
  close = () => void server.close()
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n')
  while (responses.length < 2) await once(server, 'request')
  const [first, second] = responses
  const socket = first!.req.socket as { _httpMessage?: unknown; parser?: { incoming: unknown } }
  expect([socket._httpMessage, socket.parser?.incoming, second!.req.complete]).toEqual([
    first,
    second!.req,
    false,
  ])
  for (const [res, next] of [
    [first, second],
    [second, null],
  ] as const) {
    res!.end()
    await once(res!, 'close')
    expect(socket._httpMessage).toBe(next)
  }
  client.destroy()
})

describe('push of a request (frontend/edge/http/server-request.ts)', () => {
  class Pushed extends IncomingMessage {
    readonly pushed: unknown[] = []

    override push(chunk: Buffer | null): boolean {
      this.pushed.push(chunk === null ? null : chunk.toString())
      return super.push(chunk)
    }
  }

  test('is how the parser passes on a body: each chunk, and null once the request is complete', async () => {
    const server = createServer({ IncomingMessage: Pushed })
    close = () => void server.close()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const told = once(server, 'request') as Promise<[Pushed, ServerResponse]>
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write(
      'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n',
    )
    const [req, res] = await told
    await once(req.resume(), 'end')
    expect([req.pushed, req.complete]).toEqual([['ab', 'cd', null], true])
    res.end()
    socket.destroy()
  })

  test('that keeps the body, with _consuming and readableEnded, leaves nothing to read or to keep', async () => {
    const server = createServer(MESSAGES)
    close = () => void server.close()
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const told = once(server, 'request') as Promise<[ServerRequest, ServerResponse]>
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n')
    const [req, res] = await told
    const whole = new Promise<void>((resolve) => req.passTo({ take: () => true, end: resolve }))
    socket.write('ab')
    await whole
    const { parser } = req.socket as { parser?: { incoming: unknown } }
    expect(parser?.incoming).toBe(req)
    await new Promise<void>((resolve) => res.end(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    expect([parser?.incoming, req.readableFlowing, req.listenerCount('end')]).toEqual([null, null, 0])
    socket.destroy()
  })
})

import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import {
  type AddressInfo,
  connect,
  createServer as createPlainServer,
  type Server as NetServer,
  Socket,
} from 'node:net'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, jest, test } from '@jest/globals'
import { answerClientError, refuseConnection } from '../../../frontend/edge/http/bare-answer.ts'
import { connectionOf } from '../../../frontend/edge/http/connection.ts'
import type { RestState } from '../../../frontend/edge/http/app.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import { COUNT, countBody, ECHO } from '../../support/count.ts'
import { type Server, startServer } from '../../support/server.ts'
import { CERT, CERT_FILE, KEY_FILE } from '../../support/tls/files.ts'

const PING = 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n'
const RUBBISH = 'no request\r\n\r\n'

const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
const chunked = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n`
const statuses = (text: string): string[] => text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []
const times = (count: number, status: string): string[] => Array.from({ length: count }, () => status)

/** Sends the pieces, each after the first bytes of an answer to the one before; returns all that came. */
async function exchange(socket: Socket, ...pieces: string[]): Promise<string> {
  let received = ''
  socket.on('error', () => undefined).on('data', (data: Buffer) => (received += data.toString('latin1')))
  // Reset or not.
  const closed = new Promise((resolve) => socket.once('close', resolve))
  for (const piece of pieces) {
    if (piece !== pieces[0]) await once(socket, 'data')
    socket.write(piece)
  }
  await closed
  return received
}

describe.each(['http', 'https'])('bytes that are not a request, over %s', (scheme) => {
  let server: Server
  beforeAll(async () => {
    const tls = { certificate_file: CERT_FILE, private_key_file: KEY_FILE }
    const config = { inference_address: `${scheme}://127.0.0.1:0`, ...(scheme === 'https' ? tls : {}) }
    server = await startServer({ models: [COUNT, ECHO], config })
  })

  const opened = (): Socket => {
    const to = { port: server.ports.inference, host: '127.0.0.1' }
    return scheme === 'https' ? connectTls({ ...to, ca: CERT }) : connect(to)
  }
  const sent = (...pieces: string[]): Promise<string> => exchange(opened(), ...pieces)

  test.each([1, 2, 8, 9, 20])('are answered after %d requests in front of them', async (count) => {
    expect(statuses(await sent(PING.repeat(count) + RUBBISH))).toEqual([...times(count, '200'), '400'])
  })

  test('are answered after predictions in front of them, whole ones and streams', async () => {
    const large = 'x'.repeat(2 ** 20)
    const stream = post('/predictions/count', countBody({ id: 'in-front', n: 3 }).body)
    const received = await sent(post('/predictions/echo', large) + stream + RUBBISH)
    expect(statuses(received)).toEqual(['200', '200', '400'])
    expect(received).toContain(large)
    expect(received.match(/\r\n0\r\n\r\n/g)).toHaveLength(1)
  })

  test('get none after an answer that is the last of its connection', async () => {
    const last = 'GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
    expect(statuses(await sent(last + RUBBISH))).toEqual(['200'])
  })

  // Of the first Node has the whole answer, of the second not yet.
  test.each([
    ['/ping', '200'],
    ['/nothing', '404'],
  ])('in the body of a request that was answered already get none: %s', async (path, status) => {
    expect(statuses(await sent(chunked(path), 'no size\r\n'))).toEqual([status])
  })

  test('in the body of a request get 400', async () => {
    const received = await sent(`${PING}${chunked('/predictions/echo')}no size\r\n`)
    expect(statuses(received)).toEqual(['200', '400'])
  })

  test('get an answer with the time, as every other', async () => {
    // Node makes its own once a second.
    const before = Date.now() - 60_000
    const dates = [...(await sent(PING + RUBBISH)).matchAll(/^date: (.*)\r$/gim)].map(([, date]) => date!)
    expect(dates.map((date) => new Date(date).toUTCString())).toEqual(dates)
    const times = dates.map((date) => Date.parse(date))
    expect(times.map((time) => time >= before && time <= Date.now())).toEqual([true, true])
  })

  test('are counted with the answers of their status, and have a line of their own in the access log', async () => {
    const before = await server.metric('Requests4XX')
    const socket = opened()
    await once(socket, 'connect')
    const line = new RegExp(` - /127.0.0.1:${socket.localPort} "GET /bad-request HTTP/1.1" 400 \\d+\n`)
    expect(statuses(await exchange(socket, RUBBISH))).toEqual(['400'])
    expect(await server.metric('Requests4XX')).toBe(before + 1)
    const log = await server.until(
      () => Promise.resolve(readFileSync(join(server.folder, 'logs', 'access_log.log'), 'utf8')),
      (text) => line.test(text),
    )
    expect(log.split(line)).toHaveLength(2)
  })
})

const STATE = {
  errors: {
    malformed: (isLate: boolean) => ({ status: isLate ? 408 : 400, headers: [], body: '' }),
    tooManyConnections: () => ({ status: 503, headers: [], body: '' }),
  },
  metrics: { response: () => undefined },
} as unknown as RestState

/** A client of a server that listens from now on. */
async function clientOf(server: NetServer): Promise<Socket> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return connect({ port, host: '127.0.0.1', allowHalfOpen: true })
}

describe('behind a request without an answer yet', () => {
  /** A server that has told of wrong pieces behind some requests; `code`: of what it told instead. */
  async function behind(requests: number, pieces: number, code?: string) {
    const held: ServerResponse[] = []
    const own = createServer(MESSAGES, (_req, res) => void held.push(res))
    let told = 0
    own.on('clientError', (error, socket) => {
      told += 1
      answerClientError(STATE, code === undefined ? error : Object.assign(error, { code }), socket)
    })
    const client = (await clientOf(own)).on('end', () => client.end())
    const received = exchange(client, PING.repeat(requests)).finally(() => own.close())
    while (held.length < requests) await once(own, 'request')
    const waiting: (number | undefined)[] = []
    for (let k = 1; k <= pieces; k += 1) {
      client.write('no request')
      while (told < k) await once(own, 'clientError')
      waiting.push(held[0]?.listenerCount('close'))
    }
    return { held, waiting, received, client, own }
  }

  test('malformed bytes get one answer, and wait once, in however many pieces they come', async () => {
    const { held, waiting, received } = await behind(1, 3)
    expect(waiting).toEqual([waiting[0], waiting[0], waiting[0]])
    held[0]!.end()
    expect(statuses(await received)).toEqual(['200', '400'])
  })

  test('one that is late gets no 408, because it may have arrived meanwhile', async () => {
    const { held, received } = await behind(1, 1, 'ERR_HTTP_REQUEST_TIMEOUT')
    held[0]!.end()
    expect(statuses(await received)).toEqual(['200'])
  })

  test('one that is late does not end the stream before it', async () => {
    const { held, received, client, own } = await behind(1, 0, 'ERR_HTTP_REQUEST_TIMEOUT')
    held[0]!.writeHead(200, { 'content-length': 8 }).write('item')
    const told = once(own, 'clientError')
    client.write('no request')
    await told
    held[0]!.end('item')
    expect(await received).toMatch(/\r\n\r\nitemitem$/)
  })

  test('one that is late, and the first, gets 408', async () => {
    const { received } = await behind(0, 1, 'ERR_HTTP_REQUEST_TIMEOUT')
    expect(statuses(await received)).toEqual(['408'])
  })

  test.each(['before', 'after'])('who does not read an answer made %s them has a minute', async (when) => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const minutes = () => timers.mock.calls.flatMap(([callback, ms]) => (ms === 60_000 ? [callback] : []))
    try {
      const { held, received, client } = await behind(1, when === 'after' ? 1 : 0)
      const large = Buffer.alloc(16 * 2 ** 20)
      client.pause()
      held[0]!.end(large)
      client.write('no request')
      while (minutes().length === 0) await new Promise((resolve) => setImmediate(resolve))
      expect(minutes()).toHaveLength(1)
      minutes()[0]!()
      client.resume()
      expect((await received).length).toBeLessThan(large.length)
    } finally {
      timers.mockRestore()
    }
  })
})

describe('a connection that gets its last answer', () => {
  /** What a client gets that never ends its side, once the server's has closed. */
  async function lastAnswer(server: NetServer, sent: string): Promise<string> {
    const accepted = once(server, 'connection') as Promise<[Socket]>
    const client = await clientOf(server)
    let received = ''
    client.on('error', () => undefined).on('data', (data: Buffer) => (received += data.toString()))
    client.write(sent)
    const [socket] = await accepted
    if (!socket.destroyed) await once(socket, 'close')
    if (!client.readableEnded) await once(client, 'end')
    client.destroy()
    server.close()
    return received
  }

  test('is closed, whether its client ends its side or not: 400', async () => {
    const server = createServer(MESSAGES)
    server.on('clientError', (error, socket) => answerClientError(STATE, error, socket))
    expect(await lastAnswer(server, RUBBISH)).toMatch(/^HTTP\/1\.1 400 /)
  })

  test('is closed, whether its client ends its side or not: 503; its errors harm nobody', async () => {
    const server = createPlainServer({ allowHalfOpen: true }, (socket) => {
      refuseConnection(STATE, socket, false)
      socket.emit('error', new Error('reset'))
    })
    expect(await lastAnswer(server, '')).toMatch(/^HTTP\/1\.1 503 /)
  })

  test('has a minute to read it', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const server = createServer(MESSAGES)
    server.on('clientError', (error, socket) => answerClientError(STATE, error, socket))
    await lastAnswer(server, RUBBISH)
    expect(timers.mock.calls.filter(([, ms]) => ms === 60_000)).toHaveLength(1)
    timers.mockRestore()
  })

  test('is closed at once in a stream that began before the request was whole', async () => {
    const server = createServer(MESSAGES, (req, res) => {
      connectionOf(req.socket).add({ clientLeft: () => undefined })
      res.writeHead(200).write('item')
    })
    const told = new Promise<boolean>((resolve) => {
      server.on('clientError', (error, socket) => {
        answerClientError(STATE, error, socket)
        resolve(socket.destroyed)
      })
    })
    const client = (await clientOf(server)).on('end', () => client.end())
    const received = exchange(client, chunked('/'), 'no size\r\n')
    expect(await told).toBe(true)
    expect(await received).not.toContain('0\r\n\r\n')
    server.close()
  })
})

test('nobody is answered who never got as far as HTTP', () => {
  const socket = new Socket()
  const error = Object.assign(new Error(), { code: 'ERR_TLS_HANDSHAKE_TIMEOUT' })
  answerClientError({} as RestState, error, socket)
  expect(socket.destroyed).toBe(true)
})

test('a client that offers HTTP/2 with each request, as Java’s does, keeps its connection', async () => {
  const { ports } = await startServer({ models: [ECHO] })
  const offer = post('/predictions/echo', 'a').replace(
    '\r\n\r\n',
    '\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAA\r\n\r\n',
  )
  const socket = connect(ports.inference, '127.0.0.1')
  for (let count = 0; count < 3; count += 1) {
    socket.write(offer)
    let received = ''
    while (!received.endsWith('\r\n\r\na')) received += String((await once(socket, 'data'))[0])
    expect(statuses(received)).toEqual(['200'])
  }
  socket.destroy()
})

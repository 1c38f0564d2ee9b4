import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { answerClientError } from '../../../frontend/edge/http/bare-answer.ts'
import type { RestState } from '../../../frontend/edge/http/rest-state.ts'
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
async function exchange(socket: Socket, pieces: readonly string[]): Promise<string> {
  let received = ''
  socket.on('error', () => undefined).on('data', (data: Buffer) => (received += data.toString('latin1')))
  const closed = once(socket, 'close')
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

  const sent = (...pieces: string[]): Promise<string> => {
    const to = { port: server.ports.inference, host: '127.0.0.1' }
    return exchange(scheme === 'https' ? connectTls({ ...to, ca: CERT }) : connect(to), pieces)
  }

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
})

describe('behind a request without an answer yet', () => {
  const state = {
    errors: { malformed: (isLate: boolean) => ({ status: isLate ? 408 : 400, headers: [], body: '' }) },
    metrics: { response: () => undefined },
  } as unknown as RestState

  /** @param code of the error that is told instead */
  async function behind(pieces: number, code?: string): Promise<{ waiting: number[]; received: string }> {
    const held: ServerResponse[] = []
    const own = createServer(MESSAGES, (_req, res) => void held.push(res)).listen(0, '127.0.0.1')
    let told = 0
    own.on('clientError', (error, socket) => {
      told += 1
      answerClientError(state, code === undefined ? error : Object.assign(error, { code }), socket)
    })
    await once(own, 'listening')
    const client = connect((own.address() as AddressInfo).port, '127.0.0.1')
    const received = exchange(client, [PING])
    await once(own, 'request')
    const waiting: number[] = []
    for (let k = 1; k <= pieces; k += 1) {
      client.write('no request')
      while (told < k) await once(own, 'clientError')
      waiting.push(held[0]!.listenerCount('close'))
    }
    held[0]!.end()
    const whole = await received
    own.close()
    return { waiting, received: whole }
  }

  test('malformed bytes get one answer, and wait once, in however many pieces they come', async () => {
    const { waiting, received } = await behind(3)
    expect(waiting).toEqual([waiting[0], waiting[0], waiting[0]])
    expect(statuses(received)).toEqual(['200', '400'])
  })

  test('one that is late gets no 408, because it may have arrived meanwhile', async () => {
    const { received } = await behind(1, 'ERR_HTTP_REQUEST_TIMEOUT')
    expect(statuses(received)).toEqual(['200'])
  })
})

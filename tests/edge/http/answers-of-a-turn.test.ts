import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { answerClientError } from '../../../frontend/edge/http/bare-answer.ts'
import { endWith } from '../../../frontend/edge/http/chunk-writer.ts'
import type { RestState } from '../../../frontend/edge/http/rest-state.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import { rawRequest } from '../../support/raw-http.ts'
import { ECHO } from '../../support/count.ts'
import { type Server, startServer } from '../../support/server.ts'

test('answers of one turn leave at its end, one directly after the other, each whole', async () => {
  const held: ServerResponse[] = []
  const server = createServer((_req, res) => void held.push(res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const answers = ['a', 'b', 'c'].map(async (path) => {
    const { body } = await rawRequest(port, `/${path}`, { method: 'GET' })
    return body
  })
  while (held.length < answers.length) await once(server, 'request')
  for (const res of held) {
    const text = `for ${res.req.url!}`
    res.writeHead(200, ['content-length', String(text.length)])
    endWith(res, text)
  }
  expect(held.map(({ socket }) => socket!.writableLength > 0)).toEqual([true, true, true])
  expect(await Promise.all(answers)).toEqual(['for /a', 'for /b', 'for /c'])
  server.close()
})

let server: Server
beforeAll(async () => {
  server = await startServer({ models: [ECHO] })
})

const PING = 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n'

/** Sends the pieces, each after the first bytes of an answer to the one before; returns all that came. */
async function exchange(...pieces: string[]): Promise<string> {
  const socket = connect(server.ports.inference, '127.0.0.1').on('error', () => undefined)
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
  const closed = once(socket, 'close')
  for (const piece of pieces) {
    if (piece !== pieces[0]) await once(socket, 'data')
    socket.write(piece)
  }
  await closed
  return received
}

const statuses = (text: string): string[] => text.match(/(?<=HTTP\/1\.1 )\d+/g) ?? []

test('an answer leaves before its connection is closed for what follows in the same piece', async () => {
  const sent = async (text: string): Promise<string[]> => statuses(await exchange(text))
  expect(await sent(`${PING}no request\r\n\r\n`)).toEqual(['200', '400'])
  // More requests than one connection may have waiting.
  const answers = await sent(PING.repeat(1_000))
  expect(answers.length).toBeGreaterThan(0)
  expect(new Set(answers)).toEqual(new Set(['200']))
})

describe('bytes that are not a request', () => {
  test.each([2, 8, 9, 20])('are answered after %d requests in front of them', async (count) => {
    const received = await exchange(`${PING.repeat(count)}no request\r\n\r\n`)
    expect(statuses(received)).toEqual([...Array.from({ length: count }, () => '200'), '400'])
  })

  test('get one answer, and wait once, in however many pieces they come before their turn', async () => {
    const held: ServerResponse[] = []
    const own = createServer(MESSAGES, (_req, res) => void held.push(res)).listen(0, '127.0.0.1')
    const state = {
      errors: { malformed: () => ({ status: 400, headers: [], body: '' }) },
      metrics: { response: () => undefined },
    } as unknown as RestState
    let pieces = 0
    own.on('clientError', (error, socket) => {
      pieces += 1
      answerClientError(state, error, socket)
    })
    await once(own, 'listening')
    const client = connect((own.address() as AddressInfo).port, '127.0.0.1')
    let received = ''
    client.on('data', (data: Buffer) => (received += data.toString('latin1')))
    client.write(PING)
    await once(own, 'request')
    const waiting: number[] = []
    for (let k = 1; k <= 3; k += 1) {
      client.write('no request')
      while (pieces < k) await once(own, 'clientError')
      waiting.push(held[0]!.listenerCount('close'))
    }
    expect(waiting).toEqual([waiting[0], waiting[0], waiting[0]])
    held[0]!.end()
    await once(client, 'close')
    expect(statuses(received)).toEqual(['200', '400'])
    own.close()
  })

  test('get none after an answer that is the last of its connection', async () => {
    const last = 'GET /ping HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
    expect(statuses(await exchange(`${last}no request\r\n\r\n`))).toEqual(['200'])
  })

  test('in the body of a request that was answered already get none', async () => {
    const unknown = 'POST /nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
    expect(statuses(await exchange(unknown, 'no size\r\n'))).toEqual(['404'])
  })

  test('in the body of a request get 400', async () => {
    const predict =
      'POST /predictions/echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nno size\r\n'
    expect(statuses(await exchange(`${PING}${predict}`))).toEqual(['200', '400'])
  })
})

test('of a destroyed connection, an answer that is finished before the one in front of it harms nobody', async () => {
  const held: ServerResponse[] = []
  const server = createServer(MESSAGES, (_req, res) => void held.push(res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  client.write('GET /a HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2))
  while (held.length < 2) await once(server, 'request')
  const [first, second] = held
  first!.req.socket.destroy()
  expect(() => second!.emit('finish')).not.toThrow()
  server.close()
})

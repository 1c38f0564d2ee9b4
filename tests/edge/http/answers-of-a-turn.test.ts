import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from '@jest/globals'
import { endWith } from '../../../frontend/edge/http/chunk-writer.ts'
import { rawRequest } from '../../support/raw-http.ts'
import { startServer } from '../../support/server.ts'

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

test('an answer leaves before its connection is closed for too many requests behind it', async () => {
  const { ports } = await startServer()
  const socket = connect(ports.inference, '127.0.0.1').on('error', () => undefined)
  let received = ''
  socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
  // More than one connection may have waiting.
  socket.write('GET /ping HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(1_000))
  await once(socket, 'close')
  expect(new Set(received.match(/(?<=HTTP\/1\.1 )\d+/g))).toEqual(new Set(['200']))
})

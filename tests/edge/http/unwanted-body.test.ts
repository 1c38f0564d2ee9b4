import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { once } from 'node:events'
import { afterAll, expect, test } from '@jest/globals'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import { skipBody } from '../../../frontend/edge/http/server-request.ts'

const CHUNK = '1\r\na\r\n'
const FREE_CHUNKS = 1_000
/** What Node.js reads from a socket at once. */
const READ_BYTES = 64 * 1024

const server = createServer(MESSAGES)
afterAll(() => {
  server.closeAllConnections()
  server.close()
})

test('of a body in chunks of a byte no more is read than the chunks that are free, and the read with the last of them', async () => {
  let chunks = 0
  server.on('request', (req, res) => {
    req.on('data', () => (chunks += 1))
    skipBody(req)
    res.end('ok')
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const asked = once(server, 'request') as Promise<[IncomingMessage]>
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const received: string[] = []
  socket.on('data', (data: Buffer) => received.push(data.toString())).on('error', () => undefined)
  const head = 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'
  // In one piece, so that all of it waits in the kernel while the server decides.
  socket.write(`${head}${CHUNK.repeat(100_000)}0\r\n\r\n`)

  const [req] = await asked
  await Promise.race([once(socket, 'close'), once(req, 'end')])
  expect(req.complete).toBe(false)
  expect(chunks).toBeGreaterThan(FREE_CHUNKS)
  expect(chunks).toBeLessThanOrEqual(FREE_CHUNKS + READ_BYTES / CHUNK.length)
  expect(received.join('')).toMatch(/^HTTP\/1.1 200 /)
})

import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from '@jest/globals'
import { inTurn } from '../../../frontend/edge/http/app.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import type { SafeResponse } from '../../../frontend/edge/http/safe-response.ts'

/** What ends with the response, as its span and its place among the limits, ends for each. */
test.each([
  ['all wait for the first', 0, false],
  ['some are written, and wait for the first', 0, true],
  ['the first is over, and has left the socket to the second', 1, true],
])('every response of a connection closes once when its client leaves: %s', async (_when, over, written) => {
  const held: SafeResponse[] = []
  const closes = new Map<SafeResponse, number>()
  const server = createServer(
    MESSAGES,
    inTurn((_req, res) => {
      held.push(res)
      res.on('close', () => closes.set(res, (closes.get(res) ?? 0) + 1))
    }),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => undefined)
  client.resume().write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5))
  while (held.length < 5) await once(server, 'request')
  for (const res of held.slice(0, over)) res.end('first')
  while (closes.size < over) await new Promise((resolve) => setImmediate(resolve))
  if (written) for (const res of held.slice(over + 1)) res.end('later')
  const [front] = held
  // It may be reset first.
  const closed = new Promise((resolve) => front!.req.socket.once('close', resolve))
  client.destroy()
  await closed
  // Node tells it of the one in front after the socket's own listeners.
  await new Promise((resolve) => setImmediate(resolve))
  expect(held.map((res) => closes.get(res))).toEqual([1, 1, 1, 1, 1])
  expect(held.slice(over).map(({ destroyed }) => destroyed)).toEqual(Array(5 - over).fill(true))
  server.close()
})

test('as many are handled ahead again once those in front have their answers', async () => {
  const held: SafeResponse[] = []
  const server = createServer(
    MESSAGES,
    inTurn((_req, res) => void held.push(res)),
  )
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').resume()
  for (const count of [9, 18]) {
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(9))
    while (held.length < count) await new Promise((resolve) => setImmediate(resolve))
    const last = held.at(-1)!
    const closed = new Promise((resolve) => last.once('close', resolve))
    for (const res of held.slice(count - 9)) res.end('done')
    await closed
  }
  client.destroy()
  server.close()
}, 10_000)

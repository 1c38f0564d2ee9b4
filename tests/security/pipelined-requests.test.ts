import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { inTurn } from '../../frontend/edge/http/pipelining.ts'
import { SafeResponse } from '../../frontend/edge/http/safe-response.ts'

const ends: (() => void)[] = []

afterEach(() => {
  for (const end of ends.splice(0)) end()
})

/** A server whose requests wait for each other as those of the listeners do. */
async function serve(answer: RequestListener): Promise<Server> {
  const server = createServer({ ServerResponse: SafeResponse }, inTurn(answer))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return server
}

async function client(server: Server): Promise<Socket & { received: string }> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  ends.push(() => socket.destroy())
  await once(socket, 'connect')
  const own = Object.assign(socket, { received: '' })
  socket.on('data', (chunk: Buffer) => (own.received += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  return own
}

const requests = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `GET /${from + i} HTTP/1.1\r\nHost: a\r\n\r\n`).join('')

test('pipelined requests are answered in their order, at most nine in one turn of the event loop', async () => {
  let turn = 0
  const byTurn: number[] = []
  const server = await serve((req, res) => {
    byTurn[turn] = (byTurn[turn] ?? 0) + 1
    res.end(req.url)
  })
  const socket = await client(server)
  let isOver = false
  const tick = (): void => {
    turn += 1
    if (!isOver) setImmediate(tick)
  }
  tick()
  socket.write(requests(0, 109))
  while (!socket.received.endsWith('/108')) await once(socket, 'data')
  isOver = true
  expect(Math.max(...byTurn.filter((count) => count > 0))).toBeLessThanOrEqual(9)
  expect([...socket.received.matchAll(/^\/(\d+)/gm)].map(([, number]) => Number(number))).toEqual(
    Array.from({ length: 109 }, (_, i) => i),
  )
})

test('who sends requests without end behind an answer that does not come loses the connection', async () => {
  let handled = 0
  const server = await serve(() => {
    handled += 1
  })
  const socket = await client(server)
  socket.write(requests(0, 2_000))
  await once(socket, 'close')
  expect([handled, socket.received]).toEqual([9, ''])

  // Others notice nothing.
  const other = await client(server)
  other.write(requests(0, 1))
  await once(server, 'request')
  expect(handled).toBe(10)
})

test('a request whose client leaves while it waits is never handled', async () => {
  const seen: string[] = []
  let left!: () => void
  const hasLeft = new Promise<void>((resolve) => (left = resolve))
  const server = await serve((req, res) => {
    seen.push(req.url!)
    if (req.url === '/0') req.socket.once('close', () => left())
    else res.end()
  })
  const socket = await client(server)
  socket.write(requests(0, 20))
  await once(server, 'request')
  socket.destroy()
  await hasLeft
  await new Promise((resolve) => setImmediate(resolve))
  expect(seen).toEqual(Array.from({ length: 9 }, (_, i) => `/${i}`))
})

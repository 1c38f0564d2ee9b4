import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { inTurn, type Listening } from '../../frontend/edge/http/app.ts'
import { SafeResponse } from '../../frontend/edge/http/safe-response.ts'
import { ServerRequest } from '../../frontend/edge/http/server-request.ts'

const ends: (() => void)[] = []
/** Requests that Node has told of. */
let told: number

class Told extends ServerRequest {
  constructor(socket: Socket) {
    super(socket)
    told += 1
  }
}

beforeEach(() => {
  told = 0
})

afterEach(() => {
  for (const end of ends.splice(0)) end()
})

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A server whose requests wait for each other as those of the listeners do. */
async function serve(answer: Listening): Promise<Server> {
  const server = createServer({ ServerResponse: SafeResponse, IncomingMessage: Told }, inTurn(answer))
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

async function clients(server: Server, count: number): Promise<(Socket & { received: string })[]> {
  let accepted = 0
  server.on('connection', () => (accepted += 1))
  const sockets = await Promise.all(Array.from({ length: count }, () => client(server)))
  while (accepted < count) await turn()
  return sockets
}

const requests = (from: number, to: number): string =>
  Array.from({ length: to - from }, (_, i) => `GET /${from + i} HTTP/1.1\r\nHost: a\r\n\r\n`).join('')

/** Counts what happens in each turn of the event loop. */
class Turns {
  most = 0
  #count = 0
  #next = setImmediate(() => this.#turn())

  count(): void {
    this.#count += 1
    this.most = Math.max(this.most, this.#count)
  }

  end(): void {
    clearImmediate(this.#next)
  }

  #turn(): void {
    this.#count = 0
    this.#next = setImmediate(() => this.#turn())
  }
}

function countTurns(): Turns {
  const turns = new Turns()
  ends.push(() => turns.end())
  return turns
}

test('pipelined requests are answered in their order, at most nine in one turn of the event loop', async () => {
  const turns = countTurns()
  const server = await serve((req, res) => {
    turns.count()
    res.end(req.url)
  })
  const socket = await client(server)
  socket.write(requests(0, 109))
  while (!socket.received.endsWith('/108')) await once(socket, 'data')
  expect(turns.most).toBeLessThanOrEqual(9)
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
  // The rest of the piece is not even parsed: one is told of before the parser stops.
  expect(told).toBe(111)

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
  await turn()
  expect(seen).toEqual(Array.from({ length: 9 }, (_, i) => `/${i}`))
})

test('pipelined requests of all connections are handled in turns, and all are answered', async () => {
  const turns = countTurns()
  const held: (() => void)[] = []
  let holds = true
  const server = await serve((req, res) => {
    turns.count()
    if (holds) held.push(() => res.end(req.url))
    else res.end(req.url)
  })
  const sockets = await clients(server, 300)
  for (const socket of sockets) socket.write(requests(0, 10))
  while (told < 3_000) await turn()
  // The first of each connection is not pipelined.
  expect(turns.most).toBeLessThanOrEqual(300 + 256)
  turns.most = 0
  holds = false
  for (const answer of held) answer()
  for (const socket of sockets) while (!socket.received.endsWith('/9')) await once(socket, 'data')
  expect(turns.most).toBeLessThanOrEqual(256)
})

test('a request that waits for its turn is not overtaken by a later one', async () => {
  const seen: string[] = []
  const answers: (() => void)[] = []
  const server = await serve((req, res) => {
    seen.push(req.url!)
    answers.push(() => res.end(req.url))
  })
  const socket = await client(server)
  socket.write(requests(0, 10))
  while (told < 10) await turn()
  answers[0]!()
  while (!socket.received.endsWith('/0')) await once(socket, 'data')
  // Seven of eight are ahead now.
  socket.write(requests(10, 11))
  while (told < 11) await turn()
  for (let next = 1; next < 11; next += 1) {
    while (answers.length <= next) await turn()
    answers[next]!()
  }
  while (!socket.received.endsWith('/10')) await once(socket, 'data')
  expect(seen).toEqual(Array.from({ length: 11 }, (_, i) => `/${i}`))
})

test('what waits on all connections is bounded, and what has left makes room for others', async () => {
  const server = await serve((req, res) => {
    if (req.url === '/last') res.end('/last')
  })
  const accepted = new Set<Socket>()
  server.on('connection', (socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
  })
  for (let round = 0; round < 3; round += 1) {
    const sockets = await clients(server, 60)
    const last = await client(server)
    for (const socket of sockets) socket.write(requests(0, 100))
    last.write('GET /last HTTP/1.1\r\nHost: a\r\n\r\n')
    while (!last.received.endsWith('/last')) await once(last, 'data')
    // 99 of each connection are pipelined; eight of those are handled at once, in one turn 256 of all.
    const served = [...accepted].filter((socket) => !socket.destroyed).length - 1
    expect(served).toBeGreaterThanOrEqual(Math.floor(4_096 / 99))
    expect(served).toBeLessThanOrEqual(Math.ceil(4_096 / 91))
    for (const socket of [...sockets, last]) socket.destroy()
    while (accepted.size > 0) await turn()
  }
})

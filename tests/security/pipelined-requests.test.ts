import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { inTurn, type Listening } from '../../frontend/edge/http/app.ts'
import { SafeResponse } from '../../frontend/edge/http/safe-response.ts'
import { ServerRequest } from '../../frontend/edge/http/server-request.ts'
import { Budget } from '../../frontend/edge/admission/budget.ts'
import { testAdmission } from '../support/admission.ts'

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
async function serve(answer: Listening, waiting = new Budget(4_096)): Promise<Server> {
  const listener = inTurn(answer, testAdmission({ waiting }))
  const server = createServer({ ServerResponse: SafeResponse, IncomingMessage: Told }, listener)
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

test('pipelined requests are answered in their order, one in a turn of the event loop', async () => {
  const turns = countTurns()
  const server = await serve((req, res) => {
    turns.count()
    res.end(req.url)
  })
  const socket = await client(server)
  socket.write(requests(0, 101))
  while (!socket.received.endsWith('/100')) await once(socket, 'data')
  expect(turns.most).toBe(1)
  expect([...socket.received.matchAll(/^\/(\d+)/gm)].map(([, number]) => Number(number))).toEqual(
    Array.from({ length: 101 }, (_, i) => i),
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
  expect([handled, socket.received]).toEqual([1, ''])
  // The rest of the piece is not even parsed: one is told of before the parser stops.
  expect(told).toBe(103)

  // Others notice nothing.
  const other = await client(server)
  other.write(requests(0, 1))
  await once(server, 'request')
  expect(handled).toBe(2)
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
  expect(seen).toEqual(['/0'])
})

test('what waits on all connections of an address is bounded, and what has left makes room', async () => {
  const waiting = new Budget(400)
  const server = await serve(() => undefined, waiting)
  const accepted = new Set<Socket>()
  server.on('connection', (socket) => {
    accepted.add(socket)
    socket.once('close', () => accepted.delete(socket))
  })
  for (let round = 0; round < 3; round += 1) {
    const sockets = await clients(server, 6)
    for (const socket of sockets) socket.write(requests(0, 51))
    while (accepted.size > 4) await turn()
    expect(waiting.held).toBe(200)
    for (const socket of sockets) socket.destroy()
    while (accepted.size > 0) await turn()
    expect(waiting.held).toBe(0)
  }
})

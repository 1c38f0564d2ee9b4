import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'
import type { BodyTaker } from '../../../frontend/edge/http/server-request.ts'

const MIB = 1024 * 1024
const CLIENTS = 12
const BODY = 4 * MIB
/** What a turn reads of all of them, and what Node reads of a socket before it can be paused. */
const TURN = 256 * 1024
const READ = 64 * 1024
/** Sockets that go on in a turn. */
const SOCKETS = 4

const cleanups: (() => void)[] = []

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup()
})

/** The bytes that each turn of the event loop read, and how many bodies came to their end. */
async function readAll(): Promise<{ turns: number[]; ended: number }> {
  const turns: number[] = []
  let inTurn = 0
  let ended = 0
  const taker: BodyTaker = {
    take(chunk) {
      if (inTurn === 0)
        setImmediate(() => {
          turns.push(inTurn)
          inTurn = 0
        })
      inTurn += chunk.length
      return true
    },
    end: () => (ended += 1),
  }
  const server = createServer(MESSAGES, (req, res) => {
    const end = taker.end
    req.passTo({ ...taker, end: () => (end(), res.end('done')) })
  })
  cleanups.push(() => (server.closeAllConnections(), server.close()))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const head = `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: ${BODY}\r\n\r\n`
  const sockets = Array.from({ length: CLIENTS }, (): Socket => {
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    cleanups.push(() => socket.destroy())
    socket.write(head)
    socket.write(Buffer.alloc(BODY))
    return socket
  })
  await Promise.all(sockets.map((socket) => once(socket, 'data')))
  return { turns, ended }
}

test('a turn of the event loop reads a quarter of a megabyte of all bodies, and the others go on in line', async () => {
  const { turns, ended } = await readAll()
  expect(ended).toBe(CLIENTS)
  expect(turns.reduce((all, bytes) => all + bytes, 0)).toBe(CLIENTS * BODY)
  // Those that begin are read a few times, whatever waits.
  expect(Math.max(...turns)).toBeLessThanOrEqual(TURN + CLIENTS * READ)
  const larger = turns.filter((bytes) => bytes > TURN + SOCKETS * READ)
  expect(larger.length).toBeLessThan(turns.length / 2)
  expect(turns.length).toBeGreaterThan(4 * CLIENTS)
})

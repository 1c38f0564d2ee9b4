import { beforeAll, expect, test } from '@jest/globals'
import { callFrame, RawHttp2 } from '../support/raw-http2.ts'
import { startServer, type Server } from '../support/server.ts'
import { longestTurn, TURN_PROBE } from '../support/turns.ts'

const PREDICT = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Predictions'
const HEALTH = '/grpc.health.v1.Health/Check'
/** What one address may have open. */
const CONNECTIONS = 100
const CALLS = 120

let server: Server

beforeAll(async () => {
  server = await startServer({
    flags: [],
    nodeArgs: TURN_PROBE,
  })
})

test.each([
  ['refused', PREDICT],
  ['of health', HEALTH],
])('a hundred connections with calls %s in one piece keep nobody waiting', async (_what, path) => {
  // What else the machine does makes a turn longer, and never shorter.
  const turns: number[] = []
  for (let round = 0; round < 3; round += 1) turns.push(await longestTurnOf(path))
  expect(Math.min(...turns)).toBeLessThan(200)
  await oneAfterAnother(1)
})

async function longestTurnOf(path: string): Promise<number> {
  const connections = Array.from({ length: CONNECTIONS }, () => new RawHttp2(server.ports.grpcInference))
  await Promise.all(connections.map((each) => each.ready()))
  const calls = Buffer.concat(Array.from({ length: CALLS }, (_, n) => callFrame(path, 2 * n + 1)))
  await longestTurn(server)
  for (const each of connections) each.socket.write(calls)
  await Promise.all(connections.map((each) => each.until(() => each.goaway !== undefined)))
  const longest = await longestTurn(server)
  await Promise.all(connections.map((each) => each.destroy()))
  return longest
}

/** Rounds of sixteen health calls on a new connection, all of which are answered. */
async function oneAfterAnother(rounds: number): Promise<void> {
  const connection = new RawHttp2(server.ports.grpcInference)
  await connection.ready()
  for (let round = 0; round < rounds; round += 1) {
    const streams = Array.from({ length: 16 }, () => connection.call(HEALTH))
    for (const stream of streams) {
      connection.data(stream, Buffer.alloc(5))
      connection.endStream(stream)
    }
    await connection.until(() => streams.every((stream) => connection.ended.has(stream)))
  }
  expect([connection.closed, connection.goaway]).toEqual([false, undefined])
  await connection.destroy()
}

test('one connection may make sixteen such calls at once, and as many again after them', () =>
  oneAfterAnother(3))

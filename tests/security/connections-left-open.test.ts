import { afterEach, describe, expect, test } from '@jest/globals'
import { TIMES } from '../../frontend/edge/grpc/limits.ts'
import { startGrpc, type RunningGrpc } from '../edge/grpc/start-grpc.ts'
import { grpcMessage, RawHttp2 } from '../support/raw-http2.ts'

const HEALTH = '/grpc.health.v1.Health/Check'
const STREAM = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/StreamPredictions'
const GOAWAY = 7
const UNKNOWN_FRAME = Buffer.from([0, 0, 0, 0xee, 0, 0, 0, 0, 0])
/** So few bytes at a time that they may come for as long as the connection is there. */
const SEND_EVERY_MS = 10
/** Far above what a connection may send without a request. */
const ENOUGH = 512 * 1024 * 1024

/** A connection that stays shows as a test that does not end. */
const TEST_MS = 30_000

let grpc: RunningGrpc
const clients: RawHttp2[] = []
const timers: NodeJS.Timeout[] = []

afterEach(async () => {
  for (const timer of timers.splice(0)) clearInterval(timer)
  await Promise.all(clients.splice(0).map((client) => client.destroy()))
  await grpc.close()
})

/** Never ends its side. */
async function connected(): Promise<RawHttp2> {
  const client = new RawHttp2(grpc.port)
  client.socket.allowHalfOpen = true
  clients.push(client)
  await client.ready()
  return client
}

async function checkHealth(client: RawHttp2): Promise<void> {
  const stream = client.call(HEALTH)
  client.data(stream, Buffer.alloc(5))
  client.endStream(stream)
  await client.until(() => client.over(stream))
}

function goaway(client: RawHttp2): void {
  client.frame(GOAWAY, 0, 0, Buffer.alloc(8))
}

function sendOn(client: RawHttp2): void {
  timers.push(setInterval(() => client.socket.write(UNKNOWN_FRAME), SEND_EVERY_MS))
}

/** Its place is given back when the server has seen the end of it too. */
async function over(client: RawHttp2): Promise<void> {
  await client.until(() => false)
  const { connections } = grpc.servers.listener('inference')
  while (connections.count > 0) await new Promise((resolve) => setImmediate(resolve))
}

describe('the server closes a connection whose client never ends its side', () => {
  test(
    'after the GOAWAY of the client',
    async () => {
      grpc = await startGrpc()
      const client = await connected()
      await checkHealth(client)
      goaway(client)
      sendOn(client)
      await over(client)
      expect([client.ended.size, client.closed]).toEqual([1, true])
    },
    TEST_MS,
  )

  test.each<[string, ...Parameters<typeof startGrpc>]>([
    ['because it was idle', {}, { times: { ...TIMES, idleMs: 100 } }],
    ['because of its age', { grpcInferenceMaxConnectionAgeMs: 100 }],
  ])(
    'after its own GOAWAY %s',
    async (_why, ...options) => {
      grpc = await startGrpc(...options)
      const first = await connected()
      await checkHealth(first)
      sendOn(first)
      await first.until(() => first.goaway !== undefined)
      await over(first)
      const second = await connected()
      await checkHealth(second)
      expect([first.goaway, second.ended.size]).toEqual([0, 1])
    },
    TEST_MS,
  )
})

test('bytes without end after GOAWAY are counted as before it', async () => {
  grpc = await startGrpc()
  const client = await connected()
  await checkHealth(client)
  goaway(client)
  const many = Buffer.concat(new Array<Buffer>(7_000).fill(UNKNOWN_FRAME))
  const closed = new Promise<void>((resolve) => client.socket.once('close', resolve))
  let sent = 0
  while (sent < ENOUGH && !client.closed) {
    sent += many.byteLength
    if (client.socket.write(many)) continue
    await Promise.race([new Promise((resolve) => client.socket.once('drain', resolve)), closed])
  }
  expect(client.closed).toBe(true)
})

test('a call that is open at GOAWAY goes on to its end', async () => {
  grpc = await startGrpc()
  const [client, other] = [await connected(), await connected()]
  const next = grpc.models.nextWork()
  const stream = client.call(STREAM)
  client.data(stream, grpcMessage(Buffer.from([0x0a, 1, 0x6d])))
  client.endStream(stream)
  const work = await next
  await checkHealth(other)
  goaway(client)
  goaway(other)
  sendOn(other)
  // The farewell of that one is over now.
  await other.until(() => false)
  expect([client.closed, client.over(stream)]).toEqual([false, false])
  work.respond('end')
  await client.until(() => client.over(stream))
  expect([...client.ended]).toEqual([stream])
})

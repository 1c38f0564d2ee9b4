import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status, type Client } from '@grpc/grpc-js'
import { call, healthClient, type GrpcStream, type Message } from '../../support/grpc-clients.ts'
import { RawHttp2 } from '../../support/raw-http2.ts'
import { failure, startGrpc, type RunningGrpc } from './start-grpc.ts'

const INFERENCE = 'org.pytorch.serve.grpc.inference.InferenceAPIsService'

let grpc: RunningGrpc
let client: ReturnType<typeof healthClient>

beforeEach(async () => {
  grpc = await startGrpc()
  client = healthClient(grpc.port)
})

afterEach(async () => {
  ;(client as Client).close()
  await grpc.close()
})

const check = (service = '') => call(client, client['Check']!, { service })

/** The states that a watcher is told, one after the other. */
class Told {
  readonly stream: GrpcStream<Message>
  readonly #states: AsyncIterator<Message>

  constructor(service = '') {
    this.stream = client['Watch']!({ service })
    this.#states = this.stream[Symbol.asyncIterator]()
  }

  async next(): Promise<unknown> {
    const { done, value } = await this.#states.next()
    return done ? 'ended' : value['status']
  }
}

describe('grpc.health.v1, without a token', () => {
  const SERVING = 1
  const NOT_SERVING = 2
  const UNKNOWN = 3

  test.each(['', INFERENCE])('says whether the server is ready: %j', async (service) => {
    grpc.authorizer.enabled = true
    expect(await check(service)).toEqual({ status: SERVING })
    grpc.models.startup = ['loading']
    expect(await check(service)).toEqual({ status: NOT_SERVING })
  })

  test('does not know other services', async () => {
    const error = await failure(check('nobody'))
    expect([error.code, error.details]).toEqual([Status.NOT_FOUND, 'unknown service'])
    const told = new Told('nobody')
    expect(await told.next()).toBe(UNKNOWN)
    told.stream.cancel()
  })

  test('tells a watcher the state and each change of it, and ends with the server', async () => {
    const told = new Told()
    expect(await told.next()).toBe(SERVING)
    grpc.models.startup = ['loading']
    expect(await told.next()).toBe(NOT_SERVING)
    grpc.models.startup = []
    expect(await told.next()).toBe(SERVING)
    const drained = grpc.servers.drain()
    expect(await told.next()).toBe(NOT_SERVING)
    expect(await told.next()).toBe('ended')
    await drained
  })

  test('has room for a hundred watchers, and again when they have left', async () => {
    const watchers = Array.from({ length: 100 }, () => new Told())
    expect(new Set(await Promise.all(watchers.map((told) => told.next())))).toEqual(new Set([SERVING]))
    const refused = await new Told().next().catch((error: unknown) => error)
    expect(refused).toMatchObject({ code: Status.UNAVAILABLE })
    const ended = watchers.map((told) => told.next().catch(() => 'cancelled'))
    for (const told of watchers) told.stream.cancel()
    await Promise.all(ended)
    let again: unknown
    do again = await new Told().next().catch(() => undefined)
    while (again === undefined)
    expect(again).toBe(SERVING)
  })

  test('an address that has taken all places gives them to other addresses, up to half', async () => {
    const watchers = Array.from({ length: 100 }, () => new Told())
    await Promise.all(watchers.map((told) => told.next()))
    const other = new RawHttp2(grpc.port, '127.0.0.1', true, '127.0.0.2')
    const streams: number[] = []
    for (let asked = 0; asked < 60; asked++) {
      const stream = other.call('/grpc.health.v1.Health/Watch')
      streams.push(stream)
      other.data(stream, Buffer.alloc(5))
      other.endStream(stream)
      await other.ping()
    }
    await other.until(() => streams.slice(50).every((stream) => other.over(stream)))
    expect(streams.map((stream) => other.over(stream))).toEqual([
      ...new Array<boolean>(50).fill(false),
      ...new Array<boolean>(10).fill(true),
    ])
    expect(await failure(watchers[0]!.next())).toMatchObject({ code: Status.UNAVAILABLE })
    await other.destroy()
  })
})

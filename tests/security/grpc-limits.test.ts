import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type IncomingHttpHeaders } from 'node:http2'
import { gzipSync } from 'node:zlib'
import { status, Server } from '@grpc/grpc-js'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { TIMES } from '../../frontend/edge/grpc/limits.ts'
import { http2ServersOf } from '../../frontend/edge/grpc/listener.ts'
import type { GrpcSettings } from '../../frontend/dialects/grpc-dialect.ts'
import {
  failure,
  metadata,
  predictWith,
  REQUEST,
  startGrpc,
  token,
  type RunningGrpc,
} from '../edge/grpc/start-grpc.ts'
import { grpcMessage, RawHttp2 } from '../support/raw-http2.ts'

const SERVICE = '/org.pytorch.serve.grpc.inference.InferenceAPIsService'
const PREDICT = `${SERVICE}/Predictions`
const SEQUENCES = `${SERVICE}/StreamPredictions2`
const REFLECTION = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo'
const TOKEN = { authorization: 'Bearer inference' }
const REFUSED_STREAM = 7
const ENHANCE_YOUR_CALM = 11
const KIB = 1024

let grpc: RunningGrpc
const attackers: RawHttp2[] = []

async function start(
  settings: Partial<GrpcSettings> = {},
  tokens = true,
  more: Parameters<typeof startGrpc>[1] = {},
): Promise<void> {
  grpc = await startGrpc(settings, more)
  grpc.authorizer.enabled = tokens
}

async function attacker(): Promise<RawHttp2> {
  const connection = new RawHttp2(grpc.port)
  attackers.push(connection)
  await connection.ready()
  return connection
}

/** Other clients are served as usual. */
async function neighbour(): Promise<void> {
  const { prediction } = await predictWith(grpc, REQUEST, token('inference'))
  expect(prediction.toString()).toBe('ok')
}

/** Memory that the server counts, of calls and unfinished messages. */
function waiting(): number {
  return grpc.requests.held
}

beforeEach(() => {
  attackers.length = 0
})

afterEach(async () => {
  await Promise.all(attackers.map((each) => each.destroy()))
  await grpc.close()
})

/** Waits for something that the server does by itself. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 10))
}

/** No memory of any call is counted any more. */
function allGivenBack(): Promise<void> {
  return until(() => waiting() === 0)
}

/** PredictionsRequest { model_name: "echo" } with a field of so many bytes that nobody knows. */
function request(unknown: Buffer): Buffer {
  const length: number[] = []
  for (let rest = unknown.byteLength; rest > 0; rest >>>= 7)
    length.push(rest > 127 ? (rest & 127) | 128 : rest)
  return Buffer.concat([Buffer.from('\n\u0004echo'), Buffer.from([0x7a, ...length]), unknown])
}

/** The statuses of the calls of one connection, each with a compressed message. */
async function compressedCalls(bodies: Buffer[], headers: Record<string, string>): Promise<number[]> {
  const session = connect(`http://127.0.0.1:${grpc.port}`)
  const codes = bodies.map(async (body) => {
    const call = session.request({
      ':method': 'POST',
      ':path': PREDICT,
      'content-type': 'application/grpc',
      te: 'trailers',
      'grpc-encoding': 'gzip',
      ...headers,
    })
    let code = NaN
    const note = (sent: IncomingHttpHeaders): void => {
      if (sent['grpc-status'] !== undefined) code = Number(sent['grpc-status'])
    }
    call.on('response', note).on('trailers', note).resume()
    call.end(grpcMessage(gzipSync(body), { compressed: true }))
    await once(call, 'close')
    return code
  })
  const all = await Promise.all(codes)
  session.destroy()
  return all
}

/** A message that announces a megabyte, and its first bytes. */
const UNFINISHED = grpcMessage(Buffer.alloc(100 * KIB, 97), { size: 900_000 })

describe('without a token', () => {
  beforeEach(() => start())

  test('a call is refused when its metadata is there, and none of its message is kept', async () => {
    const raw = await attacker()
    const streams = Array.from({ length: 60 }, () => raw.call(PREDICT))
    await raw.until(() => streams.every((stream) => raw.resets.has(stream)))
    expect(streams.every((stream) => raw.ended.has(stream))).toBe(true)
    expect(waiting()).toBe(0)
    await neighbour()
  })

  test('messages of calls that ask for none are small, and a connection holds less than a megabyte of them', async () => {
    const raw = await attacker()
    const part = grpcMessage(Buffer.alloc(3 * KIB), { size: 4 * KIB })
    const large = raw.call(REFLECTION)
    raw.data(large, grpcMessage(Buffer.alloc(0), { size: 4 * KIB + 1 }))
    await raw.until(() => raw.over(large))
    let most = 0
    const streams: number[] = []
    for (let sent = 0; sent < 75; sent++) {
      const stream = raw.call(REFLECTION)
      streams.push(stream)
      await raw.dataAll(stream, part)
      await raw.ping()
      most = Math.max(most, waiting())
    }
    await raw.ping()
    expect(most).toBeGreaterThan(500 * KIB)
    expect(most).toBeLessThanOrEqual(1_000_000)
    expect(streams.some((stream) => raw.over(stream))).toBe(true)
    await neighbour()
  })

  test('a connection that goes on to send messages that are too large is closed', async () => {
    const raw = await attacker()
    for (let sent = 0; sent < 30 && !raw.closed; sent++) {
      await raw.dataAll(raw.call(REFLECTION), grpcMessage(Buffer.alloc(0), { size: 4 * KIB + 1 }))
      await raw.ping()
    }
    expect(raw.goaway).toBe(ENHANCE_YOUR_CALM)
    await neighbour()
  })

  test('a connection of which every call is refused is closed', async () => {
    const raw = await attacker()
    for (let sent = 0; sent < 500 && !raw.closed; sent++) {
      const stream = raw.call(PREDICT)
      await raw.until(() => raw.over(stream))
    }
    expect(raw.closed).toBe(true)
    expect(raw.ended.size).toBeLessThanOrEqual(100)
    expect(raw.goaway).toBe(ENHANCE_YOUR_CALM)
    await neighbour()
  })

  test('a connection that calls only methods which nobody knows is closed', async () => {
    const raw = await attacker()
    for (let sent = 0; sent < 500 && !raw.closed; sent++) {
      const stream = raw.call('/no.such/Method')
      raw.endStream(stream)
      await raw.until(() => raw.over(stream))
    }
    expect(raw.goaway).toBe(ENHANCE_YOUR_CALM)
    await neighbour()
  })

  test('a connection with one call that was let in stays, however many are refused after it', async () => {
    const raw = await attacker()
    const first = raw.call(PREDICT, TOKEN)
    raw.data(first, grpcMessage(request(Buffer.alloc(1))))
    raw.endStream(first)
    await raw.until(() => raw.over(first))
    for (let sent = 0; sent < 150; sent++) {
      const stream = raw.call(PREDICT)
      await raw.until(() => raw.over(stream))
    }
    expect([raw.closed, raw.goaway]).toEqual([false, undefined])
  })
})

describe.each([
  ['with a token', true],
  ['without token authorization', false],
])('%s', (_, tokens) => {
  const headers = tokens ? TOKEN : {}

  test('streams beyond the limit are refused, however many one connection opens', async () => {
    await start({ grpcMaxConcurrentStreams: 10 }, tokens)
    const raw = new RawHttp2(grpc.port, '127.0.0.1', false)
    attackers.push(raw)
    await raw.ready()
    const streams = Array.from({ length: 200 }, () => raw.call(PREDICT, headers))
    await raw.ping()
    const refused = streams.filter((stream) => raw.resets.get(stream) === REFUSED_STREAM)
    expect(refused).toHaveLength(190)
    await neighbour()
  })

  test('unfinished messages take what an address may hold and no more', async () => {
    const limit = 3_000_000
    await start({}, tokens, { requestBytes: 2 * limit })
    const raw = await attacker()
    const streams = Array.from({ length: 60 }, () => raw.call(PREDICT, headers))
    let most = 0
    for (const stream of streams) {
      await raw.dataAll(stream, UNFINISHED)
      most = Math.max(most, waiting())
    }
    await raw.ping()
    expect(most).toBeLessThanOrEqual(limit)
    expect(most).toBeGreaterThan(limit / 2)
    expect(streams.some((stream) => raw.over(stream))).toBe(true)
    await neighbour()
    await raw.destroy()
    await allGivenBack()
  })

  test('a call without room for its message leaves the room of it to the calls beside it, at once', async () => {
    await start({}, tokens, { requestBytes: 6_000_000 })
    const raw = await attacker()
    const message = grpcMessage(request(Buffer.alloc(900_000)))
    const streams = Array.from({ length: 5 }, () => raw.call(PREDICT, headers))
    // In turns, as the calls of a client that sends them all at the same time.
    for (let at = 0; at < message.byteLength; at += 100 * KIB)
      for (const stream of streams) await raw.dataAll(stream, message.subarray(at, at + 100 * KIB))
    await raw.ping()
    const rest = streams.filter((stream) => !raw.over(stream))
    expect(rest).toHaveLength(3)
    for (const stream of rest) raw.endStream(stream)
    await raw.until(() => rest.every((stream) => raw.over(stream)))
    expect(grpc.models.works).toHaveLength(3)
    await raw.destroy()
    await allGivenBack()
  })

  test('a message in pieces of one byte takes the memory of its bytes', async () => {
    await start({}, tokens)
    const raw = await attacker()
    const streams = Array.from({ length: 4 }, () => raw.call(PREDICT, headers))
    for (const stream of streams) await raw.dataAll(stream, UNFINISHED, 1)
    await raw.ping()
    expect(waiting()).toBeGreaterThanOrEqual(raw.sent)
    expect(waiting()).toBeLessThan(2 * raw.sent)
    await neighbour()
  })

  test('a message in pieces of one byte arrives as it was sent', async () => {
    await start({}, tokens)
    const raw = await attacker()
    const stream = raw.call(PREDICT, headers)
    await raw.dataAll(stream, grpcMessage(request(Buffer.alloc(20_000))), 1)
    raw.endStream(stream)
    await raw.until(() => raw.over(stream))
    expect(grpc.models.works).toHaveLength(1)
    expect(raw.resets.has(stream)).toBe(false)
    await raw.destroy()
    await allGivenBack()
  })

  test('large messages that decompress to far more than they are fail; tensors of zeros pass', async () => {
    await start({ maxRequestSize: 20_000_000 }, tokens)
    const bombs = await compressedCalls(new Array<Buffer>(8).fill(request(Buffer.alloc(12_000_000))), headers)
    expect(bombs).toEqual(bombs.map(() => status.RESOURCE_EXHAUSTED))
    expect(grpc.models.works).toHaveLength(0)
    const honest = [request(Buffer.alloc(6_000_000)), request(randomBytes(900_000))]
    expect(await compressedCalls(honest, headers)).toEqual([status.OK, status.OK])
    expect(grpc.models.works).toHaveLength(2)
    await allGivenBack()
  })

  test('a message that decompresses to more than a request may have fails', async () => {
    await start({}, tokens)
    const bombs = await compressedCalls(new Array<Buffer>(8).fill(request(Buffer.alloc(1_000_000))), headers)
    expect(bombs).toEqual(bombs.map(() => status.RESOURCE_EXHAUSTED))
    expect(grpc.models.works).toHaveLength(0)
  })

  test('compressed messages of a stream stay in order and what is no gzip fails', async () => {
    await start({}, tokens)
    const raw = await attacker()
    const stream = raw.call(SEQUENCES, { ...headers, 'grpc-encoding': 'gzip' })
    const message = (id: string): Buffer =>
      Buffer.concat([Buffer.from('\n\u0004echo'), Buffer.from([0x22, id.length]), Buffer.from(id)])
    const ids = Array.from({ length: 30 }, (_, i) => `s${i}`)
    const sent = ids.map((id, i) =>
      i % 2 === 0 ? grpcMessage(gzipSync(message(id)), { compressed: true }) : grpcMessage(message(id)),
    )
    await raw.dataAll(stream, Buffer.concat(sent), 7)
    await until(() => grpc.models.works.length === ids.length)
    expect(grpc.models.works.map(({ job }) => /s\d+/.exec(job.request.headers)?.[0])).toEqual(ids)
    raw.data(stream, grpcMessage(Buffer.from('no gzip'), { compressed: true }))
    await raw.until(() => raw.over(stream))
    await raw.destroy()
    await allGivenBack()
  })

  test('unfinished messages of all connections together take what an address may hold', async () => {
    const limit = 3_000_000
    await start({}, tokens, { requestBytes: 2 * limit })
    const connections = await Promise.all(Array.from({ length: 8 }, attacker))
    let refused = 0
    for (const raw of connections) {
      for (const stream of Array.from({ length: 5 }, () => raw.call(PREDICT, headers))) {
        await raw.dataAll(stream, UNFINISHED)
        await raw.ping()
        expect(waiting()).toBeLessThanOrEqual(limit)
        if (raw.over(stream)) refused++
      }
    }
    expect(waiting()).toBeGreaterThan(limit / 2)
    expect(refused).toBeGreaterThan(0)
    await Promise.all(connections.map((raw) => raw.destroy()))
    await allGivenBack()
    await neighbour()
  })

  test('metadata beyond the limit is refused', async () => {
    await start({}, tokens)
    const call = predictWith(grpc, REQUEST, metadata({ ...headers, 'x-large': 'a'.repeat(16_384) }))
    expect((await failure(call)).code).toBe(status.RESOURCE_EXHAUSTED)
    const raw = await attacker()
    const stream = raw.call(PREDICT, { ...headers, 'x-large': 'a'.repeat(30_000) })
    await raw.until(() => raw.over(stream))
    expect(waiting()).toBe(0)
    await neighbour()
  })

  test('a request that does not get whole is ended in time; a stream that waits between messages is not', async () => {
    await start({}, tokens, { times: { ...TIMES, messageMs: 1_000 } })
    const raw = await attacker()
    const silent = raw.call(PREDICT, headers)
    const slow = raw.call(PREDICT, headers)
    raw.data(slow, UNFINISHED.subarray(0, 1_000))
    const half = raw.call(SEQUENCES, headers)
    raw.data(half, grpcMessage(Buffer.alloc(0), { size: 10 }))
    const idle = raw.call(SEQUENCES, headers)
    await raw.until(() => [silent, slow, half].every((stream) => raw.over(stream)))
    expect(raw.over(idle)).toBe(false)
    await neighbour()
  })
})

test('a grpc-js whose HTTP/2 servers cannot be found is an error, not a server without limits', async () => {
  await start()
  expect(() => http2ServersOf(new Server())).toThrow(/@grpc\/grpc-js/)
})

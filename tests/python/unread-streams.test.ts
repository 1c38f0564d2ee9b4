import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { peakBytes } from '../support/memory.ts'
import { allReady, begin, GrpcPredictor, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import type { RawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const MB = 1024 * 1024
const ITEM = 64 * 1024
/**
 * 79 MB: more than the frontend may grow by and sockets hold together. TorchServe's worker knows no credit:
 * it sends as fast as its socket takes it.
 */
const FLOOD = { n: 1200, size: ITEM }
/** Less than the flood, and more than the garbage that Node 24 has kept meanwhile (52 MB). */
const MAX_GROWTH = 60 * MB
const MAX_RESPONSE = 1_000_000

await describePython('Streams of Python handlers that nobody reads', ({ python }) => {
  let server: Server
  let grpc: GrpcPredictor
  /** With the default max_response_size, 6.5 MB. */
  let large: Server

  beforeAll(async () => {
    server = await startServer({
      models: [
        pythonFolder('alone', 'ops'),
        pythonFolder('other', 'ops'),
        pythonFolder('shared', 'coroutine', { asyncCommunication: true }),
      ],
      config: { python, max_response_size: MAX_RESPONSE },
    })
    await allReady(server, ['alone', 'other', 'shared'])
    grpc = new GrpcPredictor(server)
    await asLongAsAFlood()
    large = await startServer({
      models: [pythonFolder('shared', 'coroutine', { asyncCommunication: true })],
      config: { python },
    })
    await allReady(large, ['shared'])
  }, PYTHON_MS)

  afterAll(() => grpc.close())

  /** Another worker sends as much to a client that reads; meanwhile a handler that nothing holds ends. */
  async function asLongAsAFlood(): Promise<void> {
    const { complete } = await predict(server, 'other', { op: 'stream', ...FLOOD })
    expect(complete).toBe(true)
  }

  /** The frontend's peak while this lasts, over what it has now. */
  async function growth(work: () => Promise<void>, { pid } = server): Promise<number> {
    peakBytes(pid)
    const before = peakBytes(pid)
    await work()
    return peakBytes(pid) - before
  }

  test('REST: the handler waits, the frontend stays small, and every item comes when they are read', async () => {
    let stalled!: RawRequest
    const grown = await growth(async () => {
      stalled = begin(server, 'alone', { op: 'stream', ...FLOOD })
      await stalled.gotChunks(1)
      stalled.socket.pause()
      await asLongAsAFlood()
    })
    expect(grown).toBeLessThan(MAX_GROWTH)
    stalled.socket.resume()
    const { complete, chunks } = await stalled.done
    expect([complete, chunks.length]).toEqual([true, FLOOD.n + 1])
  })

  test('gRPC: the same', async () => {
    let items = 0
    const stream = grpc.begin('alone', { op: 'stream', ...FLOOD })
    const ended = new Promise((resolve, reject) => {
      stream.on('error', reject)
      stream.on('end', () => resolve(undefined))
    })
    const grown = await growth(async () => {
      await new Promise<void>((resolve) =>
        stream.on('data', () => {
          items += 1
          if (items > 1) return
          stream.pause()
          resolve()
        }),
      )
      await asLongAsAFlood()
    })
    expect(grown).toBeLessThan(MAX_GROWTH)
    expect(items).toBe(1)
    stream.resume()
    await ended
    expect(items).toBe(FLOOD.n + 1)
  })

  test('beside a stream that is read: they fail at max_response_size each, and the worker goes on', async () => {
    const { pid } = await server.worker('shared')
    const read = begin(server, 'shared', { name: 'read', n: 100_000, ms: 20 })
    await read.gotChunks(1)
    const stalled: RawRequest[] = []
    const grown = await growth(async () => {
      for (let k = 0; k < 8; k += 1) stalled.push(begin(server, 'shared', { name: `s${k}`, ...FLOOD }))
      for (const each of stalled) each.socket.pause()
      await server.until(
        () => Promise.resolve(server.output.filter((line) => line.includes('reads too slowly')).length),
        (count) => count >= stalled.length,
      )
    })
    expect(grown).toBeLessThan(48 * MB)
    const soFar = read.chunks.length
    await read.gotChunks(soFar + 10)
    read.destroy()
    for (const each of stalled) each.socket.resume()
    for (const each of stalled) expect((await each.done).complete).toBe(false)
    expect((await server.worker('shared')).pid).toBe(pid)
  })

  test('many beside a stream that is read: they have a limit together, too', async () => {
    const read = begin(large, 'shared', { name: 'read', n: 100_000, ms: 20 })
    await read.gotChunks(1)
    const stalled: RawRequest[] = []
    const grown = await growth(async () => {
      for (let k = 0; k < 60; k += 1)
        stalled.push(begin(large, 'shared', { name: `s${k}`, n: 256, size: ITEM }))
      for (const each of stalled) each.socket.pause()
      await large.until(
        () => Promise.resolve(large.output.filter((line) => line.includes('reads too slowly')).length),
        (count) => count >= stalled.length - 10,
      )
    }, large)
    // Without the limit 60 times 6.5 MB. Buffers that wait for V8's collection count, too.
    expect(grown).toBeLessThan(240 * MB)
    await read.gotChunks(read.chunks.length + 10)
    for (const each of [read, ...stalled]) each.destroy()
  })

  test(
    'a hundred with small items: what each took beyond its window is gone when it is cut',
    async () => {
      const path = join(tempDir(), 'socket')
      const local = await startServer({
        models: [pythonFolder('shared', 'coroutine', { asyncCommunication: true })],
        config: { python, inference_address: `unix:${path}` },
      })
      await allReady(local, ['shared'])
      // The kernel keeps little of a Unix socket, so what is not read is in the frontend.
      const read = openStream(path, { name: 'read', n: 100_000, ms: 20 }).resume()
      const sockets: Socket[] = [read]
      const grown = await growth(async () => {
        for (let k = 0; k < 100; k += 1)
          sockets.push(openStream(path, { name: `s${k}`, n: 3_000, size: 1000 }))
        await local.until(
          () => Promise.resolve(local.output.filter((line) => line.includes('reads too slowly')).length),
          (count) => count >= 85,
          PYTHON_MS,
        )
      }, local)
      // 25 MB of windows, 32 MB beyond them, connections, and what V8 has not collected yet (Node 24: 182 MB
      // were seen in all); the flood is 300 MB.
      expect(grown).toBeLessThan(220 * MB)
      for (const socket of sockets) socket.destroy()
    },
    PYTHON_MS,
  )
})

/** A request whose answer nobody reads. */
function openStream(path: string, input: unknown): Socket {
  const body = JSON.stringify(input)
  const head = `POST /predictions/shared HTTP/1.1\r\nHost: x\r\ncontent-type: application/json\r\n`
  const socket = connect(path).pause()
  socket.write(`${head}content-length: ${body.length}\r\n\r\n${body}`)
  return socket
}

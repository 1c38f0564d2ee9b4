import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, ended, produced, type Produced } from '../support/count.ts'
import { inferenceClient } from '../support/grpc-clients.ts'
import { residentBytes } from '../support/memory.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MB = 1024 * 1024
/** Much more than the sockets take. */
const WINDOW = 32 * MB
const STREAM = { n: 3200, size: 64 * 1024, delay: 0 } // 200 MB

let server: Server
let workerPid: number

beforeAll(async () => {
  server = await startServer({ models: [COUNT] })
  await server.ready('count')
  workerPid = (await server.worker('count')).pid
  // Both processes have reached their working size before anything is measured.
  await rawRequest(
    server.ports.inference,
    '/predictions/count',
    countBody({ id: 'warm', n: 500, size: 65_536, delay: 0 }),
  )
})

/** The run makes no more items: two reads with other work in between agree. */
async function standsStill(id: string, of = server): Promise<Produced> {
  let last = -1
  return of.until(
    async () => {
      await rawRequest(of.ports.inference, '/predictions/count', countBody({ id: 'tick', n: 20, delay: 10 }))
      return produced(of, id)
    },
    ({ items }) => {
      const still = items === last
      last = items
      return still
    },
  )
}

describe('a reader that stops in a stream of 200 MB', () => {
  test('over HTTP: the handler stands still below 16 MB, memory stays, others go on, and it can resume', async () => {
    const before = residentBytes(server.pid, workerPid)
    const request = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'stalled', ...STREAM }),
    )
    await request.gotChunks(1)
    request.socket.pause()
    const run = await standsStill('stalled')
    expect(run.state).toBe('running')
    expect(run.bytes).toBeLessThan(16 * MB)
    expect(residentBytes(server.pid, workerPid) - before).toBeLessThan(32 * MB)
    const neighbour = await rawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'neighbour', n: 300, size: 65_536, delay: 0 }),
    )
    expect(neighbour.chunks).toHaveLength(300)
    expect((await produced(server, 'stalled')).items).toBe(run.items)
    request.socket.resume()
    await request.gotChunks(run.items + 10)
    request.destroy()
    expect((await ended(server, 'stalled')).state).toBe('cancelled')
  })

  test('over gRPC: the same, with other streams on the same connection', async () => {
    const before = residentBytes(server.pid, workerPid)
    const client = inferenceClient(server.ports.grpcInference)
    const stream = client.StreamPredictions(countInput({ id: 'grpc-stalled', ...STREAM }))
    stream.on('error', () => undefined)
    await new Promise<void>((resolve) =>
      stream.once('data', () => {
        stream.pause()
        resolve()
      }),
    )
    const run = await standsStill('grpc-stalled')
    expect(run.state).toBe('running')
    expect(run.bytes).toBeLessThan(16 * MB)
    expect(residentBytes(server.pid, workerPid) - before).toBeLessThan(32 * MB)
    let messages = 0
    const neighbour = client.StreamPredictions(
      countInput({ id: 'grpc-neighbour', n: 300, size: 65_536, delay: 0 }),
    )
    for await (const _message of neighbour) messages += 1
    expect(messages).toBe(300)
    stream.cancel()
    expect((await ended(server, 'grpc-stalled')).state).toBe('cancelled')
    client.close()
  })

  test('may have a window under way, beside what the sockets take', async () => {
    const wide = await startServer({ models: [COUNT], config: { stream_window_size: WINDOW } })
    await wide.ready('count')
    const run = countBody({ id: 'wide', ...STREAM })
    const request = new RawRequest(wide.ports.inference, '/predictions/count', run)
    await request.gotChunks(1)
    request.socket.pause()
    const { state, bytes } = await standsStill('wide', wide)
    expect(state).toBe('running')
    expect(bytes).toBeGreaterThanOrEqual(WINDOW)
    expect(bytes).toBeLessThan(WINDOW + 16 * MB)
    request.destroy()
    await wide.stop()
  })

  test('that half-closes while it does not read is noticed too', async () => {
    const request = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'stalled-half', ...STREAM }),
    )
    await request.gotChunks(1)
    request.socket.pause()
    await standsStill('stalled-half')
    request.socket.end()
    expect((await ended(server, 'stalled-half')).state).toBe('cancelled')
    request.destroy()
  })
})

import { beforeAll, expect, test } from '@jest/globals'
import { peakBytes } from '../support/memory.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, rawRequest, type RawRequestOptions } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MB = 1024 * 1024
const STREAM = { n: 6400, size: 64 * 1024 } // 400 MB

let server: Server

beforeAll(async () => {
  server = await startServer({ models: [modelFolder('flood', 'overdraw', { maxConcurrency: 4 })] })
  await server.ready('flood')
})

const PATH = '/predictions/flood'

function wish(way: string, stream = STREAM): RawRequestOptions {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify({ way, ...stream }) }
}

/** A client that reads the first item and then no more. */
async function unread(way: string): Promise<RawRequest> {
  const request = new RawRequest(server.ports.inference, PATH, wish(way))
  await request.gotChunks(1)
  request.socket.pause()
  return request
}

test('a handler that ignores credit is cut off, and its worker is replaced as after a crash', async () => {
  await rawRequest(server.ports.inference, PATH, wish('fair', { n: 500, size: 65_536 }))
  peakBytes(server.pid)
  const before = peakBytes(server.pid)
  const neighbour = await unread('fair')
  const flooding = await unread('raw')
  const worker = await server.until(
    () => server.worker('flood'),
    ({ restarts, status }) => restarts === 1 && status === 'READY',
  )
  expect(peakBytes(server.pid) - before).toBeLessThan(48 * MB)
  expect(worker.lastExit!.reason).toMatch(
    /^Killed: request [-0-9a-f]{36}: The handler of flood sent items beyond its window of 262144 bytes/,
  )
  const id = /request (\S+):/.exec(worker.lastExit!.reason)![1]!
  const line = server.output.find((each) => each.includes(`${id} PROTOCOL: The handler of flood sent items`))
  expect(line).toContain('flood_1.0')
  for (const request of [flooding, neighbour]) {
    request.socket.resume()
    expect(await request.done).toMatchObject({ status: 200, complete: false })
  }
  const next = await rawRequest(server.ports.inference, PATH, wish('fair', { n: 10, size: 10 }))
  expect([next.chunks.length, next.complete]).toEqual([11, true])
})

test('a handler that does not await its sends breaks no rule: its request fails, its worker stays', async () => {
  const { pid } = await server.worker('flood')
  const hasty = await unread('hasty')
  await server.until(
    () => Promise.resolve(server.output),
    (lines) => lines.some((line) => line.includes('SEND_OVERFLOW')),
  )
  hasty.destroy()
  expect((await server.worker('flood')).pid).toBe(pid)
})

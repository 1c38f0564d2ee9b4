import { beforeAll, expect, test } from '@jest/globals'
import { peakBytes } from '../support/memory.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MB = 1024 * 1024
/** Characters of a text; a metric has two. */
const TEXT = 3 * MB
const FRAMES = 250

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [modelFolder('frames', 'frames', {})],
    config: { metrics_mode: 'prometheus' },
  })
  await server.ready('frames')
})

/** A handler writes frames with long texts by itself. Returns how far the server's memory grew, in MB. */
async function growthBy(type: string, n: number): Promise<number> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ type, n: 4, size: TEXT })
  await rawRequest(server.ports.inference, '/predictions/frames', { headers, body })
  peakBytes(server.pid)
  const before = peakBytes(server.pid)
  const many = JSON.stringify({ type, n, size: TEXT })
  await rawRequest(server.ports.inference, '/predictions/frames', { headers, body: many })
  return (peakBytes(server.pid) - before) / MB
}

test.each(['log', 'metric'])('long texts in frames of the kind %s do not fill the server', async (type) => {
  // Garbage that is not collected yet counts, too: up to a quarter of them.
  expect(await growthBy(type, FRAMES)).toBeLessThan(0.4 * ((FRAMES * TEXT) / MB))
  expect((await server.worker('frames')).status).toBe('READY')
})

test('they are on no page and in no event', async () => {
  const page = await rawRequest(server.ports.metrics, '/metrics', { method: 'GET' })
  expect(page.body).toContain('HandlerTime{')
  expect(page.body.length).toBeLessThan(MB)
})

test('a long detail of an error is cut in the log', async () => {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ type: 'failure', n: 1, size: TEXT })
  const { status } = await rawRequest(server.ports.inference, '/predictions/frames', { headers, body })
  expect(status).toBe(500)
  await server.until(
    () => Promise.resolve(server.output),
    (lines) => lines.some((line) => line.includes('INTERNAL: 0 x')),
  )
  expect(server.output.filter((line) => line.trim() === 'x').length).toBeLessThan(2 * 32_768)
})

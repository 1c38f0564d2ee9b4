import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import type { ServeError } from '../../common/errors.ts'
import { answerClientError } from '../../frontend/edge/http/bare-answer.ts'
import { bodyStream } from '../../frontend/edge/http/body-stream.ts'
import { connectionOf } from '../../frontend/edge/http/connection.ts'
import type { Exchange } from '../../frontend/edge/http/exchange.ts'
import type { RestState } from '../../frontend/edge/http/rest-state.ts'

/** Milliseconds after which the listener itself would answer 408. */
const LISTENER_MS = 100

let server: Server
let client: Socket

afterEach(() => {
  client.destroy()
  server.closeAllConnections()
  server.close()
})

/** A listener that answers with the size of the body, or the code of its error; and a client of it. */
async function start(time: { limitMs: number; idleMs: number }): Promise<void> {
  const limits = { requestTimeout: LISTENER_MS, headersTimeout: LISTENER_MS, connectionsCheckingInterval: 10 }
  server = createServer(limits, (req, res) => {
    const exchange = { req, res, connection: connectionOf(req.socket) } as unknown as Exchange
    const body = bodyStream(exchange, { ...time, key: 'some_key' })
    const read = async (): Promise<string> => {
      let size = 0
      for await (const chunk of body) size += (chunk as Buffer).length
      return `${size} bytes`
    }
    read().then(
      (said) => res.end(said),
      (thrown: unknown) => res.end(`${(thrown as ServeError).code} ${(thrown as ServeError).message}`),
    )
  })
  server.on('clientError', (error, socket) => answerClientError({} as RestState, error, socket))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  client = connect((server.address() as AddressInfo).port, '127.0.0.1')
  client.write('PUT / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 40\r\n\r\n')
}

async function answer(): Promise<string> {
  let said = ''
  for await (const data of client) said += (data as Buffer).toString()
  return said
}

test('a body may take longer than the listener allows, up to its own limit', async () => {
  await start({ limitMs: 60_000, idleMs: 60_000 })
  const said = answer()
  const begun = performance.now()
  for (let sent = 0; sent < 40; sent += 1) {
    client.write('x')
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
  expect(performance.now() - begun).toBeGreaterThan(3 * LISTENER_MS)
  expect(await said).toMatch(/40 bytes/)
})

test('a body that takes too long, or stands still, is ended', async () => {
  await start({ limitMs: 50, idleMs: 60_000 })
  expect(await answer()).toContain('DEADLINE_EXCEEDED The body took longer than 0.05 s (some_key)')
  client.destroy()
  server.close()
  await start({ limitMs: 60_000, idleMs: 50 })
  expect(await answer()).toContain('DEADLINE_EXCEEDED The body stood still for 0.05 s')
})

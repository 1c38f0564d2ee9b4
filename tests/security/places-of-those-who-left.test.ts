import { connect, type Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import { COUNT, ECHO, ended } from '../support/count.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

/** Requests that one address may have open. */
const PLACES = 4

function post(path: string, body: string): string {
  const head = ['Host: a', 'content-type: application/json', `content-length: ${body.length}`]
  return [`POST ${path} HTTP/1.1`, ...head, '', body].join('\r\n')
}

const gated = (id: string): string =>
  post('/predictions/count', JSON.stringify({ id, n: 2, gated: true, stream: true }))

/** Opens a stream that stands still, and requests whose answers wait behind it. */
async function askBehindStream(server: Server, id: string): Promise<Socket> {
  const socket = connect(server.ports.inference, '127.0.0.1').on('error', () => undefined)
  const first = new Promise((resolve) => socket.once('data', resolve))
  socket.write(gated(id) + post('/predictions/echo', '{}').repeat(2))
  await first
  return socket
}

test('who leaves while answers wait behind a stream gives all of their places back', async () => {
  const config = { address_concurrent_streams: PLACES }
  const server = await startServer({ models: [ECHO, COUNT], config })
  await Promise.all([server.ready('echo'), server.ready('count')])
  for (let i = 0; i < PLACES; i += 1) {
    const socket = await askBehindStream(server, `left ${i}`)
    socket.destroy()
    expect(await ended(server, `left ${i}`)).toMatchObject({ state: 'cancelled' })
  }
  const streams = await Promise.all(
    Array.from({ length: PLACES - 1 }, async (_, i) => {
      const socket = connect(server.ports.inference, '127.0.0.1')
      const head = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
      socket.write(gated(`stays ${i}`))
      return { socket, head: await head }
    }),
  )
  expect(streams.map(({ head }) => head.split('\r\n')[0])).toEqual(
    Array(PLACES - 1).fill(expect.stringContaining('200')),
  )
  const { status } = await rawRequest(server.ports.inference, '/predictions/echo', { body: 'hello' })
  expect(status).toBe(200)
  for (const { socket } of streams) socket.destroy()
})

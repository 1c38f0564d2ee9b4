import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { startServer } from '../support/server.ts'

/** One that is sent faster than bytes that belong to no request may come. */
const BODY = Buffer.alloc(1024 * 1024, 'x')
const REQUESTS = 20

/** The statuses of requests with a body, one after the other on one connection, and its closes. */
async function ask(
  port: number,
  method: string,
  path: string,
): Promise<{ statuses: number[]; closed: number }> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const statuses: number[] = []
  let closed = 0
  for (let n = 0; n < REQUESTS; n += 1) {
    const headers = { 'content-length': BODY.length }
    const req = request({ port, host: '127.0.0.1', method, path, agent, headers })
    if (n === 0) req.once('socket', (socket) => socket.once('close', () => (closed += 1)))
    req.end(BODY)
    const [res] = (await once(req, 'response')) as [IncomingMessage]
    await buffer(res)
    statuses.push(res.statusCode!)
    if (!req.writableFinished) await once(req, 'finish')
  }
  agent.destroy()
  return { statuses, closed }
}

test.each([
  ['inference', 'POST', '/ping', 200],
  ['management', 'PUT', '/models/echo?min_worker=1', 202],
  ['management', 'GET', '/models', 200],
] as const)(
  'a body that %s does not read with %s %s costs no connection',
  async (port, method, path, status) => {
    const server = await startServer({ models: [ECHO] })
    await server.ready('echo')
    const { statuses, closed } = await ask(server.ports[port], method, path)
    expect(statuses).toEqual(new Array<number>(REQUESTS).fill(status))
    expect(closed).toBe(0)
  },
)

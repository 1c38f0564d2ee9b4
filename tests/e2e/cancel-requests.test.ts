import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from '@jest/globals'
import { COUNT, countBody, ended, produced } from '../support/count.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

/** Too long to end by itself before a test is over. */
const STREAM = { n: 100_000, delay: 10 }

let server: Server

beforeAll(async () => {
  server = await startServer({ models: [COUNT] })
  await server.ready('count')
})

function cancel(id: string) {
  return rawRequest(server.ports.management, `/requests/${id}`, { method: 'DELETE' })
}

function begin(id: string, run: object = {}): Promise<Response> {
  const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
  return fetch(url, { method: 'POST', ...countBody({ id, ...STREAM, ...run }) })
}

test('a cancelled stream breaks visibly, its handler stops, and its id is unknown from then on', async () => {
  const response = await begin('stream')
  const id = response.headers.get('x-request-id')!
  const { status, body } = await cancel(id)
  expect([status, JSON.parse(body)]).toEqual([200, { status: `Request ${id} was cancelled` }])
  await expect(response.text()).rejects.toThrow()
  const run = await ended(server, 'stream')
  expect(run.state).toBe('cancelled')
  expect(run.items).toBeLessThan(STREAM.n)
  expect((await cancel(id)).status).toBe(404)
})

test('one stream is cancelled and the one beside it goes on', async () => {
  const [one, other] = await Promise.all([begin('one'), begin('other')])
  expect((await cancel(one.headers.get('x-request-id')!)).status).toBe(200)
  await expect(one.text()).rejects.toThrow()
  const { items } = await produced(server, 'other')
  await server.until(
    () => produced(server, 'other'),
    (run) => run.state === 'running' && run.items > items,
  )
  await other.body!.cancel()
})

test('an unknown id is 404 with its text, and another method is 405', async () => {
  const id = randomUUID()
  const { status, body } = await cancel(id)
  expect([status, JSON.parse(body)]).toEqual([
    404,
    { code: 404, type: 'ResourceNotFoundException', message: `No open request has the id ${id}` },
  ])
  expect((await rawRequest(server.ports.management, `/requests/${id}`, { method: 'POST' })).status).toBe(405)
})

import { randomUUID } from 'node:crypto'
import { beforeAll, expect, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import type { RequestsEvent } from '../../common/server-events.ts'
import { openaiFailure } from '../../frontend/dialects/openai/rest-errors.ts'
import { COUNT, countBody, countInput, ended, produced } from '../support/count.ts'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
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

/** The open request of this API, from the first event about requests. */
async function openId(api: string): Promise<string> {
  const { requests } = await server.until(firstRequests, (event) =>
    event.requests.some((request) => request.api === api),
  )
  return requests.find((request) => request.api === api)!.id
}

async function firstRequests(): Promise<RequestsEvent> {
  const response = await fetch(`http://127.0.0.1:${server.ports.management}/events?topics=requests`)
  let text = ''
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk
    if (text.includes('\n\n')) break
  }
  return JSON.parse(/^data: (.*)$/m.exec(text)![1]!) as RequestsEvent
}

test('a gRPC stream is found by its event, and ends with an error that says why', async () => {
  const client = inferenceClient(server.ports.grpcInference)
  const stream = client.StreamPredictions(countInput({ id: 'rpc', ...STREAM }))
  const read = readAll(stream)
  expect((await cancel(await openId('torchserve-grpc'))).status).toBe(200)
  const { error } = await read
  expect(error?.details).toContain('The request was cancelled by an operator')
  expect((await ended(server, 'rpc')).state).toBe('cancelled')
  client.close()
})

test('OpenAI’s clients are told not to run a cancelled request again', () => {
  const { status, headers } = openaiFailure(new ServeError('CANCELLED', 'The request was cancelled'))
  expect([status, headers]).toEqual([503, ['x-should-retry', 'false']])
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

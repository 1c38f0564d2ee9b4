import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import type { ServeError } from '../../common/errors.ts'
import type { RestDialect } from '../../frontend/dialects/rest-dialect.ts'
import type { HttpCall } from '../../frontend/edge/http/http-call.ts'
import type { ReplyHead, ReplySink } from '../../frontend/jobs/reply-sink.ts'
import type { RunningServer } from '../../frontend/server-api.ts'
import { startServer } from '../../frontend/server.ts'
import { REST_DIALECTS } from '../../frontend/dialects/index.ts'
import { EventStream } from '../../frontend/edge/http/sse.ts'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { createLogger } from '../../frontend/observe/logs/logger.ts'
import { COUNT } from '../support/count.ts'
import { tempDir } from '../support/temp.ts'

/** `GET /toy/{model}/{n}`: n items of the model as one text, or as events for a client that takes them. */
const toy: RestDialect<readonly [model: string, n: number]> = {
  name: 'toy',
  route({ target: { segments } }) {
    const [first, model, n] = segments
    return first === 'toy' && model !== undefined ? [model, Number(n)] : undefined
  },
  answer(call, [modelName, n]) {
    call.admit('inference')
    const stream = call.req.headers.accept === 'text/event-stream'
    const parts = [{ name: 'body', data: Buffer.from(JSON.stringify({ n, stream })) }]
    const sink = stream ? new ToyEvents(new EventStream(call)) : new ToyText(call)
    const job = call.job({ modelName, method: 'handle', parts }, sink)
    if (call.reply.follow(job)) call.models.submit(job)
  },
  refusal: (_call, { code }) => ({ status: 418, headers: [], json: JSON.stringify({ toy: code }) }),
  paths: () => [{ method: 'GET', path: '/toy/{model_name}/{n}', token: 'inference', operation: TOLD }],
  notFound: ({ target }) => (target.segments[0] === 'toys' ? '{"toys":0}' : undefined),
}

const TOLD = { description: 'Asks a toy.', operationId: 'toy', parameters: [], responses: {} }

class ToyText implements ReplySink {
  readonly #call: HttpCall
  constructor(call: HttpCall) {
    this.#call = call
  }
  whole(head: ReplyHead, body: Uint8Array): void {
    this.#call.reply.answer(head.status, ['x-toy', '1'], Buffer.concat([Buffer.from('toy says '), body]))
  }
  open(): void {
    throw new Error('not asked for')
  }
  write(): boolean {
    return true
  }
  close(): void {
    // Never opened.
  }
  fail(error: ServeError): void {
    this.#call.fail(error)
  }
}

class ToyEvents implements ReplySink {
  readonly #events: EventStream
  constructor(events: EventStream) {
    this.#events = events
  }
  whole(_head: ReplyHead, body: Uint8Array): void {
    this.#events.eventBytes(body, 0, body.byteLength)
    this.#events.end()
  }
  open(): void {
    this.#events.open(['x-toy', '1'])
  }
  write(chunk: Uint8Array, from: number, to: number): boolean {
    const text = Buffer.from(chunk.subarray(from, to)).toString().trim()
    return text === '' || this.#events.event(text)
  }
  close(): void {
    this.#events.event('over')
    this.#events.end()
  }
  fail(error: ServeError): void {
    this.#events.event(error.code)
    this.#events.end()
  }
}

let server: RunningServer
let inference = ''

beforeAll(async () => {
  const folder = tempDir()
  const config = join(folder, 'config.properties')
  const lines = ['inference', 'management', 'metrics'].map((name) => `${name}_address=http://127.0.0.1:0`)
  const more = [`model_store=${folder}`, `load_models=${COUNT}`, 'default_workers_per_model=1']
  const rest = ['grpc_inference_port=0', 'grpc_management_port=0', 'disable_token_authorization=true']
  writeFileSync(config, [...lines, ...more, ...rest, ''].join('\n'))
  const { settings } = await loadSettings({ tsConfig: config }, { TEMP: folder })
  const { log } = createLogger({ level: 'error', format: 'text', console: undefined })
  server = await startServer({ ...settings, tempDir: folder }, { log, restDialects: [toy, ...REST_DIALECTS] })
  inference = server.listening.find(({ name }) => name === 'Inference REST API')!.address
  for (;;) {
    const { status } = (await (await fetch(`${inference}/ping`)).json()) as { status: string }
    if (status === 'Healthy') break
  }
}, 60_000)

afterAll(() => server.close())

test('a dialect of one object answers from a real model, whole', async () => {
  const answer = await fetch(`${inference}/toy/count/2`)
  expect(answer.headers.get('x-toy')).toBe('1')
  expect(await answer.text()).toMatch(/^toy says /)
})

test('and as a stream, item by item', async () => {
  const answer = await fetch(`${inference}/toy/count/3`, { headers: { accept: 'text/event-stream' } })
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(answer.headers.get('x-toy')).toBe('1')
  const events = (await answer.text()).split('\n\n').filter((event) => event !== '')
  expect(events.at(-1)).toBe('data: over')
  expect(events).toHaveLength(4)
})

test('what it throws is answered by its own table; it has its place in the API description and its own 404', async () => {
  const refused = await fetch(`${inference}/toy/none/1`)
  expect([refused.status, await refused.json()]).toEqual([418, { toy: 'MODEL_NOT_FOUND' }])
  const described = (await (await fetch(`${inference}/api-description`)).json()) as { paths: object }
  expect(described.paths).toHaveProperty(['/toy/{model_name}/{n}', 'get', 'operationId'], 'toy')
  expect(await (await fetch(`${inference}/toys`)).json()).toEqual({ toys: 0 })
})

test('the other dialects answer as before', async () => {
  expect((await fetch(`${inference}/v2/health/live`)).status).toBe(200)
  expect((await fetch(`${inference}/v1/models`)).status).toBe(200)
})

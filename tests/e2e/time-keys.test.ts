import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { ask, DIALECTS } from '../support/dialects.ts'
import { modelFolder } from '../support/model-folder.ts'
import { said } from '../support/paced.ts'
import { RawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const LIMIT_S = 0.4
const STREAM = DIALECTS.find(({ name }) => name === 'TorchServe StreamPredictions')!
const MINUTE = 60_000

/** No limit but those of the configuration that are named; the workers may load slowly. */
function model(name: string, ...limited: string[]): string {
  const off = { queueTimeout: 0, firstResponseTimeout: 0, gapTimeout: 0, requestTimeout: 0 }
  const left = Object.entries(off).filter(([limit]) => !limited.includes(limit))
  const workers = { minWorkers: 1, maxWorkers: 1, asyncCommunication: true, startupTimeout: 120 }
  const maxConcurrency = limited.includes('queueTimeout') ? 1 : 100
  return modelFolder(name, 'paced', { ...workers, maxConcurrency, ...Object.fromEntries(left) })
}

function chat(name: string): string {
  return modelFolder(name, 'paced-chat', { minWorkers: 1, maxWorkers: 1, startupTimeout: 120 })
}

/** Keys that others override, and those of no request. */
let general: Server
let special: Server

beforeAll(async () => {
  const modelStore = tempDir()
  mkdirSync(join(modelStore, 'late'))
  const hangs = 'export const initialize = () => new Promise(() => {})\nexport const handle = () => []\n'
  writeFileSync(join(modelStore, 'late', 'handler.mjs'), hangs)
  const all = ['first', 'gap', 'total', 'queue']
  ;[general, special] = await Promise.all([
    startServer({
      modelStore,
      models: [model('response', 'firstResponseTimeout', 'gapTimeout'), chat('chat')],
      config: {
        default_response_timeout: LIMIT_S,
        default_startup_timeout: 0.05,
        openai_heartbeat_interval: 0.2,
        metric_time_interval: 1,
      },
    }),
    startServer({
      models: [
        model('first', 'firstResponseTimeout'),
        model('gap', 'gapTimeout'),
        model('total', 'requestTimeout'),
        model('queue', 'queueTimeout'),
      ],
      config: {
        default_first_response_timeout: LIMIT_S,
        default_gap_timeout: LIMIT_S,
        default_request_timeout: LIMIT_S,
        default_queue_timeout: LIMIT_S,
      },
    }),
  ])
  await Promise.all([
    general.ready('response'),
    general.ready('chat'),
    ...all.map((name) => special.ready(name)),
  ])
})

/** How a stream of a model ended, in words. */
async function endOf(server: Server, name: string, plan: object): Promise<[items: number, message: string]> {
  const { items, end } = await ask(server, STREAM, name, plan)
  return [items.length, (end as { message?: string }).message ?? end.kind]
}

const timedOut = (what: string): unknown => expect.stringContaining(`Timed out after ${LIMIT_S} s: ${what}`)
const NO_RESPONSE = 'no response (firstResponseTimeout)'
const NO_FURTHER = 'no further response (gapTimeout)'

test('default_response_timeout limits the first response and each gap', async () => {
  expect(await endOf(general, 'response', { first: MINUTE })).toEqual([0, timedOut(NO_RESPONSE)])
  expect(await endOf(general, 'response', { gap: MINUTE })).toEqual([1, timedOut(NO_FURTHER)])
})

test('a token is a sign of life, also where the client wants one whole answer', async () => {
  const plan = { id: randomUUID(), n: 12, gap: 100 }
  for (const [model, stream] of [
    ['chat', false],
    ['chat', true],
  ] as const) {
    const body = { model, stream, messages: [{ role: 'user', content: JSON.stringify(plan) }] }
    const url = `http://127.0.0.1:${general.ports.inference}/v1/chat/completions`
    const response = await fetch(url, { method: 'POST', body: JSON.stringify(body) })
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('12')])
  }
})

test('default_first_response_timeout, default_gap_timeout and default_request_timeout limit one thing each', async () => {
  expect(await endOf(special, 'first', { first: MINUTE })).toEqual([0, timedOut(NO_RESPONSE)])
  expect(await endOf(special, 'gap', { gap: MINUTE })).toEqual([1, timedOut(NO_FURTHER)])
  const total = await endOf(special, 'total', { first: MINUTE })
  expect(total).toEqual([0, timedOut('the whole request took too long (requestTimeout)')])
})

test('default_queue_timeout limits the wait for a worker', async () => {
  const id = randomUUID()
  const taking = new RawRequest(special.ports.inference, '/predictions/queue', {
    body: JSON.stringify({ id, first: MINUTE }),
  })
  await said(special, 'began', id)
  const waited = await endOf(special, 'queue', {})
  expect(waited).toEqual([0, timedOut('waited too long for a worker (queueTimeout)')])
  taking.destroy()
})

test('default_startup_timeout limits the loading of a handler', async () => {
  const { status, json } = await general.manage('POST', '/models?url=late&initial_workers=1&synchronous=true')
  expect(status).toBe(500)
  expect(json.message).toContain('The worker was not loaded within 0.05 s (startupTimeout)')
})

test('openai_heartbeat_interval is the silence before a keep-alive comment', async () => {
  const gates = join(tempDir(), 'item')
  const plan = { id: randomUUID(), n: 2, gates }
  const messages = [{ role: 'user', content: JSON.stringify(plan) }]
  const request = new RawRequest(general.ports.inference, '/v1/chat/completions', {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'chat', messages, stream: true }),
  })
  const text = (): string => Buffer.concat(request.chunks).toString()
  for (let chunks = 1; !/^:/m.test(text()); chunks += 1) await request.gotChunks(chunks)
  writeFileSync(`${gates}.1`, '')
  await request.done
  expect(text()).toMatch(/"1\\n"[^]*\n:[^]*"2\\n"[^]*\[DONE\]/)
})

test('metric_time_interval is the time between two measurements of the system', async () => {
  const file = join(general.folder, 'logs', 'ts_metrics.log')
  const measured = (): Promise<number> =>
    Promise.resolve(readFileSync(file, 'utf8').split('MemoryUtilization').length - 1)
  expect(await general.until(measured, (count) => count >= 3)).toBeGreaterThanOrEqual(3)
})

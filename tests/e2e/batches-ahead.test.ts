import { beforeAll, beforeEach, expect, test } from '@jest/globals'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Gate } from '../support/gate.ts'
import type { Asked } from '../support/handlers/ahead/handler.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

let server: Server
const logs = tempDir()
let log: string
let count = 0

beforeAll(async () => {
  server = await startServer({
    models: [
      modelFolder('one', 'ahead', { minWorkers: 1, maxWorkers: 1 }),
      modelFolder('two', 'ahead', { minWorkers: 2, maxWorkers: 2 }),
    ],
  })
  await Promise.all([server.ready('one'), server.ready('two')])
})

beforeEach(() => {
  count += 1
  log = join(logs, `begun-${count}`)
})

function send(model: string, asked: Asked = {}): RawRequest {
  return new RawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...asked, log }),
  })
}

function ask(model: string, asked: Asked = {}): Promise<RawResponse> {
  return send(model, asked).done
}

/** After this, the server expects short requests, so the next ones wait at the workers. */
async function warm(model: string): Promise<void> {
  for (let k = 0; k < 50; k += 1) await Promise.all([ask(model), ask(model), ask(model)])
}

function begun(): string[] {
  if (!existsSync(log)) return []
  return readFileSync(log, 'utf8')
    .split('\n')
    .filter((name) => name !== '' && name !== 'undefined')
}

async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  await server.until(async () => condition(), Boolean)
}

async function pending(model: string): Promise<number> {
  return (await server.describe(model))[0]!.jobQueueStatus.pendingRequests
}

test('a short request passes a long one when another worker is free', async () => {
  await warm('two')
  const [never, soon] = [new Gate(), new Gate()]
  const long = [
    ask('two', { name: 'long', until: never.path }),
    ask('two', { name: 'less long', until: soon.path }),
  ]
  await until(() => begun().length === 2)
  const short = Array.from({ length: 8 }, (_, k) => ask('two', { name: `short ${k}` }))
  soon.open()
  for (const answer of short) expect((await answer).status).toBe(200)
  expect((await long[1]!).status).toBe(200)
  never.open()
  expect((await long[0]!).status).toBe(200)
})

test('requests at a worker are queued, and one whose client leaves there never begins, though the worker was blocked', async () => {
  await warm('one')
  const gate = new Gate()
  const first = ask('one', { name: 'first', block: gate.path })
  await until(() => begun().length === 1)
  const leaver = send('one', { name: 'left', until: gate.path })
  const last = ask('one', { name: 'last' })
  await until(async () => (await pending('one')) === 2)
  leaver.destroy()
  await until(async () => (await pending('one')) === 1)
  gate.open()
  expect([(await first).status, (await last).status]).toEqual([200, 200])
  expect(begun()).toEqual(['first', 'last'])
})

test('what waits at a worker that is killed is served by the next one, in order', async () => {
  await warm('one')
  const pid = Number((await ask('one')).body)
  const never = new Gate()
  const first = ask('one', { name: 'first', block: never.path })
  await until(() => begun().length === 1)
  const others = ['second', 'third', 'fourth'].map((name) => ask('one', { name }))
  await until(async () => (await pending('one')) === 3)
  process.kill(pid, 'SIGKILL')
  expect((await first).status).toBe(507)
  for (const answer of others) {
    const { status, body } = await answer
    expect([status, Number(body) === pid]).toEqual([200, false])
  }
  expect(begun().sort()).toEqual(['first', 'fourth', 'second', 'third'])
})

test('a request that ends its worker has begun once, and the others are answered', async () => {
  await warm('one')
  const gate = new Gate()
  const asked: Asked[] = [
    { name: 'first', block: gate.path },
    { name: 'deadly', die: true },
    { name: 'third' },
    { name: 'fourth' },
  ]
  const answers: Promise<RawResponse>[] = []
  for (const [k, one] of asked.entries()) {
    answers.push(ask('one', one))
    await until(async () => begun().length === 1 && (await pending('one')) === k)
  }
  gate.open()
  const statuses = (await Promise.all(answers)).map(({ status }) => status)
  expect(statuses.toSorted()).toEqual([200, 200, 200, 500])
  expect(begun().toSorted()).toEqual(['deadly', 'first', 'fourth', 'third'])
})

test('scaling a worker away loses nothing that waits at it', async () => {
  await warm('two')
  const gates = [new Gate(), new Gate()]
  const long = gates.map(({ path }, k) => ask('two', { name: `long ${k}`, until: path }))
  await until(() => begun().length === 2)
  const short = Array.from({ length: 6 }, (_, k) => ask('two', { name: `short ${k}` }))
  await until(async () => (await pending('two')) === 6)
  const scaled = server.manage('PUT', '/models/two?min_worker=1&max_worker=1&synchronous=true')
  for (const gate of gates) gate.open()
  const statuses = (await Promise.all([...long, ...short])).map(({ status }) => status)
  expect(statuses).toEqual(Array(8).fill(200))
  expect((await scaled).status).toBe(200)
  expect(begun()).toHaveLength(8)
})

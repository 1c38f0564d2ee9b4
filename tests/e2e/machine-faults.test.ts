import { cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { COUNT, countBody } from '../support/count.ts'
import { type Fault, Faults } from '../support/faults.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, type Server, type ServerOptions, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { spawnSync } from '../support/tools.ts'
import { VerifyingLoad } from '../support/verifying-load.ts'

/** A server whose system calls can fail. */
async function startWith(options: ServerOptions = {}): Promise<{ server: Server; faults: Faults }> {
  const faults = new Faults()
  const server = await startServer({ models: [COUNT], ...options, ...faults.options })
  await server.ready('count')
  return { server, faults }
}

const stream = (server: Server, id: string, n: number): RawRequest =>
  new RawRequest(server.ports.inference, '/predictions/count', countBody({ id, n, delay: 10 }))

const ON_THE_WAY_OUT: Fault[] = [
  { call: 'write', code: 'ENOSPC', text: '.model_server' },
  { call: 'rename', code: 'EROFS', text: '.model_server' },
  { call: 'open', code: 'EMFILE', text: '-shutdown.cfg' },
  { call: 'rename', code: 'ENOSPC', text: '-shutdown.cfg' },
  { call: 'unlink', code: 'EROFS', text: '/tmp/' },
]

test.each(ON_THE_WAY_OUT)('a stop drains although $call fails with $code for $text', async (fault) => {
  const { server, faults } = await startWith({ snapshots: true })
  const running = stream(server, 'drains', 100)
  await running.gotChunks(3)
  faults.make(fault)
  const stopped = server.stop()
  const { chunks, complete } = await running.done
  expect([chunks.length, complete, await stopped]).toEqual([100, true, 0])
  expect(faults.hits()).toBeGreaterThan(0)
  const lines = server.output.filter((line) => line.includes(`${fault.code}: `))
  expect(lines).not.toEqual([])
  for (const line of lines) expect(line).toContain(fault.text)
})

/** A model in a file of its own, so that a fault can mean its workers alone. */
const OTHER = `other=${join(REPOSITORY, 'model-store', 'echo')}`

test('a temporary folder that was cleaned is made again for the next worker', async () => {
  const { server } = await startWith({ models: [COUNT, OTHER] })
  await server.ready('other')
  const load = new VerifyingLoad(server)
  const tmp = join(server.folder, 'tmp')
  for (const name of readdirSync(tmp)) if (/^ts-/.test(name)) rmSync(join(tmp, name), { recursive: true })
  expect((await server.manage('PUT', '/models/other?min_worker=2&synchronous=true')).status).toBe(200)
  expect(await load.end()).toBeGreaterThan(0)
  expect(await server.stop()).toBe(0)
})

const hasPrlimit = process.platform === 'linux' && spawnSync('prlimit', ['--version']).status === 0
const needsPrlimit = hasPrlimit ? test : test.skip

needsPrlimit('without descriptors no worker starts, and all of them when there are some', async () => {
  const server = await startServer({ models: [COUNT, OTHER] })
  await server.ready('count')
  await server.ready('other')
  const running = stream(server, 'through', 200)
  await running.gotChunks(3)
  const descriptors = (count: number): number | null =>
    spawnSync('prlimit', ['--pid', String(server.pid), `--nofile=${count}:4096`]).status
  expect(descriptors(readdirSync(`/proc/${server.pid}/fd`).length + 12)).toBe(0)
  expect((await server.manage('PUT', '/models/other?min_worker=6')).status).toBe(202)
  const [line] = await server.lines(/Load failed \(id \w+\): /)
  expect(line).toMatch(/EMFILE/)
  const { chunks, complete } = await running.done
  expect([chunks.length, complete]).toEqual([200, true])
  expect(descriptors(1024)).toBe(0)
  await server.ready('other')
  expect(await server.stop()).toBe(0)
})

test('a handler that ends its process on every tenth request goes on answering', async () => {
  const tenth = `tenth=${join(REPOSITORY, 'tests', 'soak', 'models', 'tenth')}`
  const server = await startServer({ models: [tenth], config: { default_workers_per_model: 1 } })
  await server.ready('tenth')
  let answers = 0
  for (let k = 0; k < 100; k += 1) {
    const { status } = await rawRequest(server.ports.inference, '/predictions/tenth', { body: 'x' })
    answers += Number(status === 200)
  }
  expect(answers).toBe(90)
  expect((await server.worker('tenth')).state).not.toBe('failed')
  expect(await server.stop()).toBe(0)
})

test('a model whose workers die before they answer says that it is not ready', async () => {
  const dead = tempDir()
  writeFileSync(join(dead, 'handler.mjs'), 'export function handle() { process.abort() }\n')
  const server = await startServer({ models: [`dead=${dead}`] })
  await server.ready('dead')
  const ask = (): Promise<number> =>
    rawRequest(server.ports.inference, '/predictions/dead', { body: 'x' }).then(({ status }) => status)
  for (let k = 0; k < 3; k += 1) await ask()
  await server.lines(/Ends again and again \(id \w+\): The process was killed by SIGABRT/)
  expect(await ask()).toBe(503)
  expect(await server.metric('torchserve_ts_failing', { model_name: 'dead' })).toBe(1)
  const [version] = await server.describe('dead')
  expect(version!.failure?.reason).toBe('The process was killed by SIGABRT')
  const ready = await rawRequest(server.ports.inference, '/v2/models/dead/ready', { method: 'GET' })
  expect(ready.status).not.toBe(200)
  await server.stop()
})

test('a model whose folder is gone is described, with the folder as the cause', async () => {
  const folder = join(tempDir(), 'away')
  cpSync(join(REPOSITORY, 'model-store', 'count'), folder, { recursive: true })
  const server = await startServer({ models: [`away=${folder}`] })
  await server.ready('away')
  rmSync(folder, { recursive: true })
  process.kill((await server.worker('away')).pid, 'SIGKILL')
  const [described] = await server.until(
    () => server.describe('away'),
    ([version]) => version?.failure !== undefined,
  )
  expect(described!.failure!.reason).toContain(`the folder ${folder} is gone`)
  await server.stop()
})

const AT_THE_START: [Fault, hint: string][] = [
  [{ call: 'write', code: 'ENOSPC', text: '.model_server' }, '/tmp (TEMP) and '],
  [{ call: 'mkdir', code: 'EROFS', text: '/ts-' }, '/logs (LOG_LOCATION): make room there'],
  [{ call: 'open', code: 'EMFILE', text: '/owner' }, 'raise the limit of open files (ulimit -n)'],
]

test.each(AT_THE_START)('a start that the machine refuses says what helps: %j', async (fault, hint) => {
  const faults = new Faults()
  faults.make(fault)
  const failure = await startServer(faults.options).then(
    () => undefined,
    (error: unknown) => (error as Error).message,
  )
  const line = failure?.split('\n').find((each) => each.startsWith(`torchserve-ts: ${fault.code}: `))
  expect(line).toContain(fault.text)
  expect(line).toContain(hint)
})

test('a snapshot that cannot be written is reported, and written when the machine allows it', async () => {
  const { server, faults } = await startWith({ snapshots: true })
  const written = (): string[] =>
    readdirSync(join(server.folder, 'logs', 'config')).filter((name) => name.endsWith('-snapshot.cfg'))
  faults.make({ call: 'rename', code: 'ENOSPC', text: '-snapshot.cfg' })
  expect((await server.manage('PUT', '/models/count?min_worker=2&synchronous=true')).status).toBe(200)
  await server.lines('The snapshot snapshot could not be written; trying again in 5 s')
  expect(written()).toEqual([])
  faults.heal()
  await server.until(
    async () => written().length,
    (count) => count === 1,
  )
  const text = readFileSync(join(server.folder, 'logs', 'config', written()[0]!), 'utf8')
  expect(text).toMatch(/"minWorkers"\\?: 2/)
  await server.stop()
})

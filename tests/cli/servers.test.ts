import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { OpenRequest } from '../../common/server-events.ts'
import { linesOf } from '../../frontend/cli/status.ts'
import { isServerProcess } from '../../frontend/cli/pid-file.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { CLI, REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'
import { Cli, finished, START, wrote } from './support.ts'

/** Command lines in folders of their own, which share a temporary folder. */
function neighbours(count: number): { clis: Cli[]; temp: string; env: Record<string, string> } {
  const clis = Array.from({ length: count }, () => new Cli())
  const temp = join(clis[0]!.folder, 'tmp')
  return { clis, temp, env: { TEMP: temp } }
}

interface Shown {
  pid: number
  folder: string
  config?: string
  state: string
}

async function status(cli: Cli, env: Record<string, string>): Promise<Shown[]> {
  return JSON.parse((await cli.run(['status', '--json'], env)).out) as Shown[]
}

test('servers of two folders run beside each other; a stop in a folder ends its own', async () => {
  const { clis, temp, env } = neighbours(3)
  const [one, two, elsewhere] = clis as [Cli, Cli, Cli]
  expect((await one.start(env)).status).toBe(0)
  expect((await two.start(env, '--ts-config', '/dev/null')).status).toBe(0)
  const [first, second] = await status(one, env)
  expect(first).toMatchObject({ folder: realpathSync(one.folder), state: 'running' })
  expect(second).toMatchObject({ folder: realpathSync(two.folder), config: '/dev/null' })

  // From elsewhere it is not clear which is meant, and nothing is stopped.
  const unclear = await elsewhere.run(['--stop'], env)
  expect(unclear.status).toBe(1)
  expect(unclear.err).toContain(
    'torchserve-ts: more than one server runs. Stop one with --stop in its folder',
  )
  expect(unclear.err).toContain(`  pid ${first!.pid} in ${first!.folder}\n`)
  expect(unclear.err).toContain(`  pid ${second!.pid} in ${second!.folder} with /dev/null\n`)
  const unknown = await elsewhere.run(['--stop', '--ts-config', 'other'], env)
  expect([unknown.status, unknown.err.split('\n')[0]]).toEqual([
    1,
    'torchserve-ts: not one server runs with other. These run:',
  ])
  expect([first!.pid, second!.pid].map(isServerProcess)).toEqual([true, true])

  const stopped = { status: 0, out: 'TorchServe-TS has stopped.\n', err: '' }
  expect(await two.run(['--stop'], env)).toEqual(stopped)
  expect([first!.pid, second!.pid].map(isServerProcess)).toEqual([true, false])
  // The only one: as in TorchServe, its folder does not matter.
  const only = await elsewhere.run(['--stop'], env)
  expect(only.out).toBe(
    `Stopping the server with pid ${first!.pid} in ${first!.folder}\nTorchServe-TS has stopped.\n`,
  )
  expect(readdirSync(temp)).toEqual([])
  expect((await one.run(['status'], env)).status).toBe(1)
})

test('a stop with a configuration file ends the server that was started with it, from anywhere', async () => {
  const { clis, env } = neighbours(3)
  const [one, two, elsewhere] = clis as [Cli, Cli, Cli]
  await one.start(env)
  await two.start(env, '--ts-config', '/dev/null')
  const [first, second] = await status(one, env)
  const { out } = await elsewhere.run(['--stop', '--ts-config', '/dev/null'], env)
  expect(out).toMatch(
    /^Stopping the server with pid \d+ in .* with \/dev\/null\nTorchServe-TS has stopped\.\n$/,
  )
  expect([first!.pid, second!.pid].map(isServerProcess)).toEqual([true, false])
  await one.run(['--stop'], env)
})

test('a stop with a configuration file leaves a server of its folder alone that has another', async () => {
  const { clis, env } = neighbours(1)
  const [one] = clis as [Cli]
  await one.start(env, '--ts-config', '/dev/null')
  const [running] = await status(one, env)
  const other = await one.run(['--stop', '--ts-config', 'other'], env)
  expect([other.status, isServerProcess(running!.pid)]).toEqual([1, true])
  expect((await one.run(['--stop'], env)).status).toBe(0)
})

test('a start during a stop says so, and waits for it', async () => {
  const cli = new Cli()
  const server = cli.spawn(['--start', '--foreground', '--model-store', 'store'], { TRY: 'never close' })
  const end = finished(server)
  await wrote(server, 'Model server started.')
  const { pid } = cli
  server.kill('SIGINT')
  await wrote(server, 'Stopping when no request runs')
  expect((await status(cli, {}))[0]).toMatchObject({ pid, state: 'stopping' })
  const start = cli.spawn(START)
  const started = finished(start)
  await wrote(start, `torchserve-ts: waiting for the server of this folder to stop (pid ${pid})`)
  server.kill('SIGINT')
  expect((await end).status).toBe(130)
  await wrote(start, 'Model server started.')
  start.stdout!.destroy()
  start.stderr!.destroy()
  expect((await started).status).toBe(0)
  expect(cli.pid).not.toBe(pid)
  await cli.run(['--stop'])
  expect(existsSync(cli.claim)).toBe(false)
})

test('the status shows models, workers, their last exits and ports', async () => {
  const server = await startServer({
    models: ['echo'],
    modelStore: join(CLI, '..', '..', '..', 'model-store'),
  })
  await server.ready('echo')
  const env = { ...process.env, NODE_OPTIONS: '', TEMP: join(server.folder, 'tmp') }
  mkdirSync(join(server.folder, 'below'))
  const run = async (...flags: string[]): Promise<string> =>
    (await execa(process.execPath, [CLI, 'status', ...flags], { cwd: join(server.folder, 'below'), env }))
      .stdout
  const { pid } = await server.worker('echo')
  process.kill(pid, 'SIGKILL')
  await server.until(
    () => server.worker('echo'),
    (worker) => worker.status === 'READY' && worker.pid !== pid,
  )
  const lines = (await run()).split('\n')
  expect(lines[0]).toMatch(
    new RegExp(`^Server ${server.pid} in ${realpathSync(server.folder)}: running since `),
  )
  expect(lines).toContain(`  Configuration: ${join(server.folder, 'config.properties')}`)
  expect(lines).toContain(`  Inference REST API: http://127.0.0.1:${server.ports.inference}`)
  expect(lines).toContain('  Running requests: 0')
  expect(lines.find((line) => line.includes('Model echo'))).toBe(
    '  Model echo, version 1.0: 1 worker, 0 waiting in the queue (room for 100 more)',
  )
  const worker = await server.worker('echo')
  expect(lines).toContain(`    Worker ${worker.id}: ready, pid ${worker.pid}, 0 requests, 1 restart`)
  expect(lines.at(-1)).toMatch(/^ {6}last exit at .*SIGKILL/)

  const [shown] = JSON.parse(await run('--json')) as [Record<string, unknown>]
  const { body } = await rawRequest(server.ports.management, '/models/echo', { method: 'GET' })
  const [described] = JSON.parse(body) as [object]
  expect(shown).toMatchObject({
    pid: server.pid,
    state: 'running',
    openRequests: 0,
    models: [{ ...described, workers: [{ pid: worker.pid, restarts: 1 }] }],
  })
})

test('status shows no pid of a worker that has no process', () => {
  const worker = { id: '9001', state: 'starting', pid: -1, inFlight: 0, restarts: 0 }
  const model = { modelName: 'm', modelVersion: '1.0', jobQueueStatus: {}, workers: [worker] }
  const server = { pid: 1, folder: '/', state: 'running', models: [model] }
  expect(linesOf(server as never)).toContain('    Worker 9001: starting, 0 requests')
})

test('status shows a model of the start that could not be loaded', () => {
  const failed = {
    name: 'cut',
    failure: { id: 'f00d', at: '2026-01-01T00:00:00.000Z', reason: 'no archive' },
  }
  const server = { pid: 1, folder: '/', state: 'running', models: [], failed: [failed] }
  expect(linesOf(server as never).slice(1)).toEqual([
    '  Model cut: not loaded since 2026-01-01T00:00:00.000Z (id f00d): no archive',
  ])
})

/** Streams of which each has sent one item. */
async function openStreams(server: Server, count: number): Promise<RawRequest[]> {
  const streams = Array.from({ length: count }, () => {
    const body = JSON.stringify({ n: 2, gated: true, id: randomUUID() })
    const headers = { 'content-type': 'application/json' }
    return new RawRequest(server.ports.inference, '/predictions/count', { headers, body })
  })
  await Promise.all(streams.map((stream) => stream.gotChunks(1)))
  return streams
}

test('status --json names the oldest 200 requests, and counts all of them', async () => {
  const server = await startServer({ models: [join(REPOSITORY, 'model-store', 'count')], folder: tempDir() })
  await server.ready('count')
  const streams = [...(await openStreams(server, 3)), ...(await openStreams(server, 202))]
  const env = { ...process.env, TEMP: join(server.folder, 'tmp') }
  const { stdout } = await execa(process.execPath, [CLI, 'status', '--json'], { env, stdin: 'ignore' })
  const [shown] = JSON.parse(stdout) as [{ openRequests: number; requests: OpenRequest[] }]
  expect([shown.openRequests, shown.requests.length]).toEqual([205, 200])
  const ages = shown.requests.map(({ ageMs }) => ageMs)
  expect(ages).toEqual(ages.toSorted((one, other) => other - one))
  for (const stream of streams) stream.destroy()
})

import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { COUNT, countBody, ECHO } from '../support/count.ts'
import { isAlive } from '../support/processes.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { Command } from '../support/run-command.ts'
import { CLI, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** `npm run test:starts` sets it to 100. */
const STARTS = Number(process.env['STARTS'] ?? '10')

/** Runs the command to its end, in a folder and a temporary folder of its own. */
function cli(folder: string, ...args: string[]): ReturnType<Command['finished']> {
  const env = { ...process.env, NODE_OPTIONS: '', TEMP: folder, TMPDIR: folder }
  return new Command(process.execPath, [CLI, ...args], folder, env).finished()
}

/** A folder with a store and a configuration on free ports. */
function place(config: Record<string, string | number> = {}): { folder: string; args: string[] } {
  const folder = tempDir()
  mkdirSync(join(folder, 'store'))
  const all = {
    inference_address: 'http://127.0.0.1:0',
    management_address: 'http://127.0.0.1:0',
    metrics_address: 'http://127.0.0.1:0',
    grpc_inference_port: 0,
    grpc_management_port: 0,
    ...config,
  }
  const lines = Object.entries(all).map(([key, value]) => `${key}=${value}\n`)
  writeFileSync(join(folder, 'ts.properties'), lines.join(''))
  return { folder, args: ['--start', '--ncs', '--ts-config', 'ts.properties', '--model-store', 'store'] }
}

async function workerPid(server: Server, model: string): Promise<number> {
  await server.ready(model)
  return (await server.worker(model)).pid
}

/** A model that says where it loads, and is never done with it while a file is there. */
function heldModel(): { model: string; hold: string } {
  const folder = join(tempDir(), 'held')
  const hold = join(folder, 'hold')
  mkdirSync(folder)
  const source = `import { existsSync } from 'node:fs'
  export async function initialize() {
    console.log('loads in ' + process.pid)
    while (existsSync(${JSON.stringify(hold)})) await new Promise((resolve) => setTimeout(resolve, 10))
  }
  export const handle = (data) => data.map(() => 'ok')`
  writeFileSync(join(folder, 'handler.ts'), source)
  return { model: `held=${folder}`, hold }
}

describe('start and stop', () => {
  test(
    `${STARTS} times in a row leave no process, socket, file or port behind`,
    async () => {
      for (let k = 0; k < STARTS; k += 1) {
        const server = await startServer({ models: [ECHO] })
        const pid = await workerPid(server, 'echo')
        const response = await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
        expect(response.status).toBe(200)
        expect(await server.stop()).toBe(0)
        expect(isAlive(pid)).toBe(false)
        expect(server.leftovers().filter((name) => name !== 'models')).toEqual([])
        await portIsFree(server.ports.inference)
      }
    },
    STARTS * 60_000,
  )

  test('SIGTERM lets a running stream finish', async () => {
    const server = await startServer({ models: [COUNT] })
    await server.ready('count')
    const stream = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 's', n: 60, delay: 20 }),
    )
    await stream.gotChunks(2)
    const exit = server.stop()
    const { chunks, complete } = await stream.done
    expect(complete).toBe(true)
    expect(chunks).toHaveLength(60)
    expect(await exit).toBe(0)
  })

  test('a stream that outlasts the drain is broken, not cut as if it were whole', async () => {
    const server = await startServer({ models: [COUNT], config: { drain_timeout: 0.2 } })
    await server.ready('count')
    const stream = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 's', n: 100_000, delay: 10 }),
    )
    await stream.gotChunks(2)
    const exit = server.stop()
    expect((await stream.done).complete).toBe(false)
    expect(await exit).toBe(0)
  })

  test('Ctrl-C reaches the whole process group, as a terminal sends it, and the end is clean', async () => {
    const server = await startServer({ models: [ECHO], detached: true })
    const pid = await workerPid(server, 'echo')
    process.kill(-server.pid, 'SIGINT')
    const [code] = await once(server.process, 'exit')
    expect(code).toBe(0)
    expect(isAlive(pid)).toBe(false)
    expect(server.output.join('\n')).not.toMatch(/error|at .*\.js/i)
  })

  test('a version whose replacement still loads: both end with the server, and who asked for it is told', async () => {
    const { model, hold } = heldModel()
    const server = await startServer({ models: [model] })
    const first = await workerPid(server, 'held')
    writeFileSync(hold, '')
    const load = rawRequest(server.ports.inference, '/v2/repository/models/held/load', { body: '{}' })
    const started = await server.until(
      () => Promise.resolve(server.output.flatMap((line) => /loads in (\d+)/.exec(line)?.[1] ?? [])),
      (pids) => pids.length === 2,
    )
    expect(await server.stop()).toBe(0)
    expect((await load).status).toBe(503)
    expect([first, Number(started[1])].map(isAlive)).toEqual([false, false])
  })

  test('workers do not outlive a frontend that was killed', async () => {
    const server = await startServer({ models: [ECHO] })
    const pid = await workerPid(server, 'echo')
    await server.stop('SIGKILL')
    await server.until(
      () => Promise.resolve(isAlive(pid)),
      (alive) => !alive,
    )
  })
})

describe('in the background', () => {
  test('--start returns when the server has started, --stop ends it, and both say so', async () => {
    const { folder, args } = place()
    const started = await cli(folder, ...args, '--disable-token-auth', '--models', ECHO)
    expect(started).toMatchObject({ status: 0, err: '' })
    expect(started.out).toContain('Model server started.')
    const port = Number(/Inference REST API .*:(\d+)/.exec(started.out)?.[1])
    const response = await rawRequest(port, '/predictions/echo', {
      headers: { 'content-type': 'text/plain' },
      body: 'bg',
    })
    expect(response.body).toBe('bg')
    const again = await cli(folder, ...args)
    expect(again.status).toBe(1)
    expect(again.out + again.err).toMatch(/already running/)
    const pid = Number(readFileSync(join(folder, '.model_server.pid'), 'utf8'))
    const stopped = await cli(folder, '--stop')
    expect(stopped.status).toBe(0)
    expect(isAlive(pid)).toBe(false)
    expect(existsSync(join(folder, '.model_server.pid'))).toBe(false)
  })
})

/** A model that cannot be loaded. */
function brokenModel(): string {
  const folder = join(tempDir(), 'broken')
  mkdirSync(folder)
  const source = `export function initialize() {
    console.log('about to load')
    throw new Error('the weights are missing')
  }
  export const handle = (data) => data`
  writeFileSync(join(folder, 'handler.mjs'), source)
  return `broken=${folder}`
}

describe('--wait', () => {
  test.each([[[]], [['--foreground']]])(
    'ends with the cause of a model that does not load %j',
    async (how) => {
      const { folder, args } = place()
      const models = ['--models', ECHO, brokenModel()]
      const { status, out, err } = await cli(
        folder,
        ...args,
        ...how,
        '--disable-token-auth',
        '--wait',
        ...models,
      )
      expect([status, err]).toEqual([
        1,
        'torchserve-ts: Model broken, version 1.0, did not load: the weights are missing\n',
      ])
      // As in TorchServe, what a handler prints is on the console of the start, also in the background.
      expect(out).toMatch(/MODEL_LOG - about to load$/m)
      expect(out).not.toContain('Model server started.')
      expect(existsSync(join(folder, '.model_server.pid'))).toBe(false)
    },
  )

  test('returns when all models are loaded', async () => {
    const { folder, args } = place()
    const { status, out } = await cli(folder, ...args, '--disable-token-auth', '--wait', '--models', ECHO)
    expect([status, out.includes('Model server started.')]).toEqual([0, true])
    const port = Number(/Management REST API .*:(\d+)/.exec(out)?.[1])
    const { body } = await rawRequest(port, '/models/echo', { method: 'GET' })
    const [{ workers }] = JSON.parse(body) as [{ workers: { status: string }[] }]
    expect(new Set(workers.map((worker) => worker.status))).toEqual(new Set(['READY']))
    await cli(folder, '--stop')
  })
})

describe('a mistake is one clear line and a non-zero exit', () => {
  test('a port that is taken', async () => {
    const taken = createServer()
    taken.listen(0, '127.0.0.1')
    await once(taken, 'listening')
    const { port } = taken.address() as { port: number }
    const { folder, args } = place({ inference_address: `http://127.0.0.1:${port}` })
    for (const foreground of [[], ['--foreground']]) {
      const { status, err } = await cli(folder, ...args, ...foreground)
      expect(status).toBe(1)
      expect(err.trim().split('\n')).toHaveLength(1)
      expect(err).toContain(`${port}`)
      expect(err).toContain('in use')
    }
    // A worker that ends with the server did not fail.
    const { model, hold } = heldModel()
    writeFileSync(hold, '')
    const { err, out } = await cli(folder, ...args, '--foreground', '--models', model)
    expect(err.trim().split('\n')).toHaveLength(1)
    expect(out).not.toContain('Failed to start workers')
    taken.close()
  })

  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['an archive that is missing', ['--models', 'nobody.mar'], {}, /nobody\.mar/],
    ['a value that cannot be', [], { job_queue_size: 'many' }, /job_queue_size.*many/],
    ['a key that is misspelt', [], { job_queue_sise: '5' }, /job_queue_sise.*job_queue_size/],
    ['a flag that does not exist', ['--modelstore', 'x'], {}, /modelstore/],
  ])('%s', async (_name, flags, config, expected) => {
    const { folder, args } = place(config)
    const { status, err } = await cli(folder, ...args, ...flags)
    expect(status).not.toBe(0)
    expect(err.trim().split('\n')[0]).toMatch(expected)
    expect(err).not.toMatch(/ at .*\.js/)
  })

  test('a broken archive, for a start that waits', async () => {
    const { folder, args } = place()
    writeFileSync(join(folder, 'store', 'broken.mar'), 'not a zip')
    const { status, err } = await cli(folder, ...args, '--wait', '--models', 'broken.mar')
    expect(status).toBe(1)
    expect(err).toMatch(/broken\.mar/)
  })
})

test('an echo answers when the server says that it has started', async () => {
  const server = await startServer({ models: [ECHO] })
  const { body } = await rawRequest(server.ports.inference, '/predictions/echo', {
    headers: { 'content-type': 'text/plain' },
    body: 'first',
  })
  expect(body).toBe('first')
})

async function portIsFree(port: number): Promise<void> {
  const probe = createServer()
  probe.listen(port, '127.0.0.1')
  await once(probe, 'listening')
  probe.close()
  await once(probe, 'close')
}

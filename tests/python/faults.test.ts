import { beforeAll, describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { cpSync, readFileSync, writeFileSync } from 'node:fs'
import { readAll } from '../support/grpc-clients.ts'
import { isAlive, isRunning } from '../support/processes.ts'
import {
  allReady,
  answerOf,
  begin,
  errorOf,
  GrpcPredictor,
  predict,
  PYTHON_MS,
} from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'

/** One model per death, because a worker that dies repeatedly restarts later each time. */
const MODELS = ['idle', 'killed', 'busy', 'streams', 'exits', 'breaks', 'memory', 'half', 'nonsense', 'ops']

await describePython('Python workers that fail', ({ python, realTorch }) => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({
      models: [
        ...MODELS.map((name) => pythonFolder(name, 'ops')),
        pythonFolder('hangs', 'ops', { responseTimeout: 1 }),
      ],
      config: { python, max_response_size: 100_000 },
    })
    await allReady(server, [...MODELS, 'hangs'])
  }, PYTHON_MS)

  /** Waits until a new process serves the model; returns how the last one ended. */
  async function back(model: string, before: number): Promise<string> {
    const { lastExit } = await server.until(
      () => server.worker(model),
      ({ status, pid }) => status === 'READY' && pid !== before,
      PYTHON_MS,
    )
    expect(await answerOf(server, model, { op: 'echo' })).toEqual({ op: 'echo' })
    return lastExit!.reason
  }

  test('killed from outside while idle: the worker is back', async () => {
    const { pid } = await server.worker('idle')
    process.kill(pid, 'SIGKILL')
    expect(await back('idle', pid)).toBe('The process was killed by SIGKILL')
  })

  // As TorchServe answers: the kernel ends a process like this when memory runs out.
  test('killed from outside in a request: 507 at once', async () => {
    const { pid } = await server.worker('killed')
    const running = predict(server, 'killed', { op: 'sleep', ms: 60_000 })
    await server.until(
      () => server.worker('killed'),
      ({ inFlight }) => inFlight === 1,
    )
    process.kill(pid, 'SIGKILL')
    expect(errorOf(await running)).toEqual([507, 'Worker died.'])
    expect(await back('killed', pid)).toBe('The process was killed by SIGKILL')
  })

  test('killed in a stream: it breaks at once, a waiting request is served by the new process', async () => {
    const { pid } = await server.worker('busy')
    const running = begin(server, 'busy', { op: 'stream', n: 1000, ms: 20 })
    await running.gotChunks(1)
    const waiting = predict(server, 'busy', { op: 'echo', n: 2 })
    process.kill(pid, 'SIGKILL')
    expect((await running.done).complete).toBe(false)
    expect((await waiting).status).toBe(200)
    await back('busy', pid)
  })

  test('killed in a gRPC stream: the status says it, behind what came', async () => {
    const grpc = new GrpcPredictor(server)
    const { pid } = await server.worker('streams')
    const stream = grpc.begin('streams', { op: 'stream', n: 1000, ms: 20 })
    const ended = readAll(stream)
    await new Promise((resolve) => stream.once('data', resolve))
    process.kill(pid, 'SIGKILL')
    const { messages, error } = await ended
    expect(messages.length).toBeGreaterThan(0)
    expect([error?.code, error?.details.split('\n')[0]]).toEqual([Status.RESOURCE_EXHAUSTED, 'Worker died.'])
    grpc.close()
    await back('streams', pid)
  })

  test('sys.exit in the handler: Worker died., with the exit code in describe', async () => {
    const { pid } = await server.worker('exits')
    const response = await predict(server, 'exits', { op: 'leave', code: 3 })
    expect(errorOf(response)).toEqual([500, 'Worker died.'])
    // With PyTorch loaded, Python takes long to exit, so its exit code is not awaited then.
    const reason = realTorch ? /exited with code 3|closed its connection/ : /^The process exited with code 3$/
    expect(await back('exits', pid)).toMatch(reason)
  })

  test('sys.exit after the first item breaks the stream', async () => {
    const { pid } = await server.worker('breaks')
    const response = await predict(server, 'breaks', { op: 'stream', n: 3, exit_at: 1 })
    expect([response.status, response.complete, response.chunks.map(String)]).toEqual([
      200,
      false,
      ['0:', '1:'],
    ])
    await back('breaks', pid)
  })

  const withExitCode = realTorch ? test.skip : test
  withExitCode('exit code 137 is running out of memory: 507', async () => {
    const { pid } = await server.worker('memory')
    expect(errorOf(await predict(server, 'memory', { op: 'leave', code: 137 }))).toEqual([
      507,
      'Worker died.',
    ])
    await back('memory', pid)
  })

  test('half an answer and the end: Worker died.', async () => {
    const { pid } = await server.worker('half')
    expect(errorOf(await predict(server, 'half', { op: 'half' }))).toEqual([500, 'Worker died.'])
    expect(await back('half', pid)).toBe('The process exited with code 9')
  })

  test('bytes that are no reply: Worker died. at once, and the reason in describe', async () => {
    const { pid } = await server.worker('nonsense')
    expect(errorOf(await predict(server, 'nonsense', { op: 'nonsense' }))).toEqual([500, 'Worker died.'])
    expect(await back('nonsense', pid)).toMatch(
      /^The worker violated the protocol: A length in a reply must be from 0 to \d+, not -5/,
    )
    expect(isAlive(pid)).toBe(false)
  })

  describe('an answer over max_response_size', () => {
    const message = 'A response of 150000 bytes is larger than max_response_size (100000)'

    test('fails its request, and the worker goes on', async () => {
      const { pid } = await server.worker('ops')
      expect(errorOf(await predict(server, 'ops', { op: 'big', n: 150_000 }))).toEqual([500, message])
      const grpc = new GrpcPredictor(server)
      expect(await grpc.unaryError('ops', { op: 'big', n: 150_000 })).toEqual([8, message])
      grpc.close()
      expect((await predict(server, 'ops', { op: 'big', n: 100_000 })).body).toHaveLength(100_000)
      expect((await server.worker('ops')).pid).toBe(pid)
    })

    test('in a stream: breaks it, and what the handler still sends is thrown away', async () => {
      const { pid } = await server.worker('ops')
      const response = await predict(server, 'ops', { op: 'big', n: 150_000, stream: true })
      expect([response.complete, response.chunks.map(String)]).toEqual([false, ['first']])
      await answerOf(server, 'ops', { op: 'echo' })
      expect((await server.worker('ops')).pid).toBe(pid)
    })
  })

  test('a handler that throws after the first item breaks the stream and nothing else', async () => {
    const { pid } = await server.worker('ops')
    const response = await predict(server, 'ops', { op: 'stream', n: 3, throw_at: 1 })
    expect([response.complete, response.chunks.map(String)]).toEqual([false, ['0:', '1:']])
    await answerOf(server, 'ops', { op: 'echo' })
    expect((await server.worker('ops')).pid).toBe(pid)
  })

  test('a handler that hangs: the request times out, and the worker is started again', async () => {
    const { pid } = await server.worker('hangs')
    const [status, message] = errorOf(await predict(server, 'hangs', { op: 'sleep', ms: 60_000 }))
    expect(status).toBe(500)
    expect(message).toContain('no response')
    expect(await back('hangs', pid)).toBe(
      'Killed: a cancelled request sent nothing for 1000 ms; the worker is restarted',
    )
  })

  test('unregistering does not wait for a handler that works for nobody', async () => {
    const { pid } = await server.worker('idle')
    const left = begin(server, 'idle', { op: 'stream', n: 2, ms: 600_000 })
    await left.gotChunks(1)
    left.destroy()
    expect((await server.manage('DELETE', '/models/idle')).status).toBe(200)
    expect(isRunning(pid)).toBe(false)
  })

  test('the server lets go of everything', async () => {
    const pids = [(await server.worker('ops')).pid, (await server.worker('hangs')).pid]
    expect(await server.stop()).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
  })
})

await describePython('Python workers that cannot start', ({ python }) => {
  let server: Server

  beforeAll(async () => {
    server = await startServer({ config: { python } })
  })

  /** Registers a handler with this source and waits for the answer. */
  async function register(
    name: string,
    source: string,
    config: Record<string, unknown> = {},
  ): Promise<{ status: number; message: string }> {
    const folder = pythonFolder(name, 'ops', { maxRetryTimeoutInSec: 0, ...config })
    const path = folder.slice(name.length + 1)
    writeFileSync(`${path}/ops.py`, source)
    cpSync(path, `${server.folder}/store/${name}`, { recursive: true })
    const { status, json } = await server.manage(
      'POST',
      `/models?url=${name}&initial_workers=1&synchronous=true`,
    )
    return { status, message: json.message ?? '' }
  }

  test('RuntimeError while loading: 500, with the traceback in the log', async () => {
    const { status, message } = await register(
      'runtime',
      'class A:\n  def initialize(self, c):\n    raise RuntimeError("weights are gone")\n  def handle(self, d, c): pass\n',
    )
    expect([status, message]).toEqual([
      500,
      'Failed to start workers for model runtime version: 1.0. Unknown exception: RuntimeError: weights are gone (ops.py, line 3)',
    ])
    await server.lines(/Load failed \(id [0-9a-f]{12}\): Unknown exception: RuntimeError: weights are gone/)
    await server.lines(/(?<!exception: )RuntimeError: weights are gone/)
  })

  test('MemoryError while loading: 507', async () => {
    const { status, message } = await register(
      'memory',
      'class A:\n  def initialize(self, c):\n    raise MemoryError()\n  def handle(self, d, c): pass\n',
    )
    expect([status, message]).toEqual([
      507,
      'Failed to start workers for model memory version: 1.0. System out of memory',
    ])
  })

  test('any other exception: the process ends without a word, and answer and log say why', async () => {
    const { status, message } = await register('broken', 'import not_there\n')
    const why = "ModuleNotFoundError: No module named 'not_there' (ops.py, line 1). Install it for the Python"
    expect([status, message]).toEqual([500, expect.stringContaining(why)])
    await server.lines(/Load failed \(id [0-9a-f]{12}\): ModuleNotFoundError: No module named 'not_there'/)
  })

  test('loading for longer than startupTimeout: 500, and the process is gone', async () => {
    const source =
      'import os, time\nclass A:\n  def initialize(self, c):\n    print("me", os.getpid(), flush=True)\n    time.sleep(600)\n  def handle(self, d, c): pass\n'
    const { status, message } = await register('late', source, { startupTimeout: 1 })
    expect(status).toBe(500)
    expect(message).toContain('The worker was not loaded within 1 s (startupTimeout)')
    const [line] = await server.lines(/ me \d+$/)
    const pid = Number(/\d+$/.exec(line!))
    await server.until(
      async () => isRunning(pid),
      (running) => !running,
    )
  })

  test('no interpreter: one error, with the reason in the log', async () => {
    const other = await startServer({
      models: [pythonFolder('ops', 'ops', { maxRetryTimeoutInSec: 0 })],
      config: { python: '/nowhere/python' },
    })
    const { lastExit } = await other.until(
      () => other.worker('ops'),
      ({ lastExit }) => lastExit !== undefined,
    )
    expect(lastExit!.reason).toContain('/nowhere/python')
  })

  test('a worker that is starting is ended with the server', async () => {
    const folder = pythonFolder('slow', 'ops')
    const path = folder.slice('slow='.length)
    const source = readFileSync(`${path}/ops.py`, 'utf8')
    writeFileSync(`${path}/ops.py`, `import time\ntime.sleep(60)\n${source}`)
    const other = await startServer({ models: [folder], config: { python, drain_timeout: 1 } })
    const { pid } = await other.until(
      () => other.worker('slow'),
      (worker) => worker.pid > 0 && worker.state === 'loading',
      PYTHON_MS,
    )
    await other.stop()
    expect(isAlive(pid)).toBe(false)
    expect(other.leftovers()).toEqual(['models'])
  })
})

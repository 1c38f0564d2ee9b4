import { once } from 'node:events'
import { statSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from '@jest/globals'
import { PROTOCOL_VERSION } from '../../protocol/messages.ts'
import { freePorts } from '../support/ports.ts'
import {
  handlerModule,
  request,
  startProcess,
  startWorker,
  WorkerProcess,
} from '../support/worker-process.ts'
import { frameOf } from '../support/frames.ts'

const LIVE = `
  export default class {
    async handle([{ body }], context) {
      if (body === 'wait') await new Promise((resolve) => context.signal.addEventListener('abort', resolve))
      if (body === 'until SIGTERM') await new Promise((resolve) => process.once('SIGTERM', () => setImmediate(resolve)))
      if (body === 'deaf') await new Promise(() => setInterval(() => undefined, 1000))
      if (body === 'later') setTimeout(() => { throw new Error('thrown later') })
      if (body === 'reject') void Promise.reject(new Error('rejected alone'))
      if (body === 'slow') await new Promise((resolve) => setTimeout(resolve, 100))
      return ['answered ' + body]
    }
    shutdown() { console.log('shut down') }
  }`

test('it says its pid and that it started, then greets the one connection', async () => {
  const worker = await startProcess()
  expect(worker.stdout).toBe(`[PID]${worker.child.pid}\nTorch worker started.\n`)
  const connection = await worker.connect()
  expect(connection.received[0]).toEqual({
    type: 'ready',
    protocolVersion: PROTOCOL_VERSION,
    pid: worker.child.pid,
    rank: 0,
    runtime: `node ${process.versions.node}`,
  })
  expect(await connection.close()).toBe(0)
  expect(worker.stderr).toBe('')
})

test('only its user may use the socket file, which is gone after the first connection', async () => {
  const worker = await startProcess()
  if (!('path' in worker.address)) throw new Error('no path')
  expect(statSync(worker.address.path).mode & 0o077).toBe(0)
  const connection = await worker.connect()
  expect(worker.socketExists).toBe(false)
  const second = connect(worker.address)
  const [error] = (await once(second, 'error')) as [NodeJS.ErrnoException]
  expect(error.code).toBe('ENOENT')
  expect(await connection.close()).toBe(0)
})

test('it listens on a TCP port', async () => {
  const [port] = await freePorts(1)
  const worker = await startProcess({ address: { port: port! } })
  expect(await (await worker.connect()).close()).toBe(0)
})

test.each([
  [['--sock-type', 'carrier-pigeon'], 'must be unix or tcp'],
  [['--sock-type', 'tcp'], 'needs --port'],
  [['--sock-type', 'tcp', '--port', '70000'], '--port must be a whole number'],
  [['--sock-type', 'tcp', '--port', '80x'], '--port must be a whole number'],
  [['--wat'], '--wat'],
  [['--max-frame-bytes', '-1'], 'max-frame-bytes'],
])('a command line that cannot be used is one line and exit 1: %j', async (args, message) => {
  const worker = new WorkerProcess({ args })
  expect(await worker.exited).toBe(1)
  expect(worker.stderr).toContain(message)
  expect(worker.stderr.trim().split('\n')).toHaveLength(1)
})

test('an address in use is one line and exit 1', async () => {
  const first = await startProcess()
  const second = new WorkerProcess({ address: first.address })
  expect(await second.exited).toBe(1)
  expect(second.stderr).toMatch(/^The worker cannot listen: .*EADDRINUSE.*\n$/)
  first.child.kill('SIGTERM')
  expect(await first.exited).toBe(0)
  expect(first.socketExists).toBe(false)
})

test('it leaves when its stdin ends before anybody connected', async () => {
  const worker = await startProcess()
  worker.child.stdin!.end()
  expect(await worker.exited).toBe(0)
  expect(worker.socketExists).toBe(false)
})

test('it leaves when the connection closes: what runs is cancelled, the handler shut down', async () => {
  const worker = await startWorker(LIVE)
  worker.predict(request(1, 'wait'))
  await worker.ping()
  expect(await worker.close()).toBe(0)
  expect(worker.process.stdout).toContain('shut down')
})

test('it leaves on SIGTERM when what runs has finished and the handler has shut down', async () => {
  const worker = await startWorker(LIVE)
  worker.predict(request(1, 'until SIGTERM'))
  await worker.ping()
  worker.process.child.kill('SIGTERM')
  expect((await worker.answer(1)).items).toEqual(['answered until SIGTERM'])
  expect(await worker.process.exited).toBe(0)
  expect(worker.process.stdout).toContain('shut down')
})

test('it leaves on SIGTERM at once when nothing is loaded', async () => {
  const connection = await (await startProcess()).connect()
  connection.process.child.kill('SIGTERM')
  expect(await connection.process.exited).toBe(0)
})

test('the end of its stdin ends what a SIGTERM would let finish, after the handler shut down', async () => {
  const worker = await startWorker(LIVE)
  worker.predict(request(1, 'wait'))
  await worker.ping()
  worker.process.child.kill('SIGTERM')
  worker.process.child.stdin!.end()
  expect((await worker.answer(1)).error!.code).toBe('CANCELLED')
  expect(await worker.process.exited).toBe(0)
  expect(worker.process.stdout).toContain('shut down')
})

test('a deaf handler does not hold up the end for long', async () => {
  const worker = await startWorker(LIVE.replace('shutdown() {', 'shutdown() { return new Promise(() => {});'))
  worker.predict(request(1, 'deaf'))
  await worker.ping()
  const start = performance.now()
  worker.process.child.stdin!.end()
  expect(await worker.process.exited).toBe(0)
  expect(performance.now() - start).toBeLessThan(30_000)
})

test('Ctrl-C is left to the frontend', async () => {
  const worker = await startWorker(LIVE)
  worker.process.child.kill('SIGINT')
  worker.predict(request(1, 'still'))
  expect((await worker.answer(1)).items).toEqual(['answered still'])
  expect(await worker.close()).toBe(0)
})

test('unload lets run what runs, takes nothing new, shuts down and leaves', async () => {
  const worker = await startWorker(LIVE)
  worker.predict(request(1, 'slow'))
  worker.send({ type: 'unload' })
  worker.predict(request(2, 'new'))
  expect((await worker.answer(2)).error!.code).toBe('SHUTTING_DOWN')
  expect((await worker.answer(1)).items).toEqual(['answered slow'])
  expect(await worker.process.exited).toBe(0)
  expect(worker.process.stdout).toContain('shut down')
})

test('a predict before the load is refused', async () => {
  const worker = await (await startProcess()).connect()
  worker.predict(request(1))
  expect((await worker.answer(1)).error!.code).toBe('SHUTTING_DOWN')
  expect(await worker.close()).toBe(0)
})

test.each([
  ['later', 'Uncaught exception: Error: thrown later'],
  ['reject', 'Unhandled rejection: Error: rejected alone'],
])('an error that nobody catches ends the worker, with its stack on stderr: %s', async (body, message) => {
  const worker = await startWorker(LIVE)
  worker.predict(request(1, body))
  expect(await worker.process.exited).toBe(1)
  expect(worker.process.stderr).toContain(message)
  expect(worker.process.stderr).toContain('handler.mjs')
})

test('a frame over --max-frame-bytes ends the connection and the worker, with the reason', async () => {
  const worker = await startWorker(LIVE, { args: ['--max-frame-bytes', '2000'] })
  worker.predict(request(1, 'x'.repeat(3000)))
  expect(await worker.process.exited).toBe(1)
  expect(worker.process.stderr).toContain('exceeds the limit of 2000')
})

test('a message that is none, or a number that is taken, ends the worker', async () => {
  const first = await startWorker(LIVE)
  first.send({ type: 'load', modelName: 1 } as never)
  expect(await first.process.exited).toBe(1)
  expect(first.process.stderr).toContain('Malformed message: load')
  const second = await startWorker(LIVE)
  second.predict(request(1, 'wait'))
  second.predict(request(1, 'wait'))
  expect(await second.process.exited).toBe(1)
  expect(second.process.stderr).toContain('Request 1 is already open')
})

test('console output of a handler stays on stdout and stderr', async () => {
  const worker = await startWorker(
    `export const handle = () => { console.log('to out'); console.error('to err'); return [''] }`,
  )
  worker.predict(request(1))
  await worker.answer(1)
  expect(await worker.close()).toBe(0)
  expect(worker.process.stdout).toContain('to out')
  expect(worker.process.stderr).toBe('to err\n')
})

test('a batch of several frames in one write, and one frame in many, are the same to it', async () => {
  const worker = await startProcess()
  const socket = connect((worker.address as { path: string }).path)
  const path = handlerModule(`export const handle = () => ['ok']`)
  const load = frameOf({
    type: 'load',
    modelName: 'm',
    modelVersion: '1',
    modelDir: '/',
    handlerPath: path,
    manifest: {},
    modelConfig: {},
    batchSize: 1,
    gpuId: -1,
    serverVersion: '1',
    maxResponseBytes: 10,
    maxUnsentBytes: 10,
    decodeInput: true,
  })
  const bytes = Buffer.concat([load, frameOf({ type: 'ping', nonce: 7 })])
  for (const byte of bytes) socket.write(Buffer.of(byte))
  const PONG = frameOf({ type: 'pong', nonce: 7 }).toString('latin1')
  let received = ''
  for await (const chunk of socket) {
    received += (chunk as Buffer).toString('latin1')
    if (received.includes(PONG) && received.includes('methods')) break
  }
  expect(await worker.exited).toBe(0)
})

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import type { UnpackTask } from '../../model-archiver/unpack-into.ts'
import { UnpackThreads } from '../../model-archiver/unpack-thread.ts'
import { unpackArchive } from '../../model-archiver/unpack.ts'
import { rawZip } from './archives-by-hand.ts'
import { failure, tempFolder } from './temp.ts'

let started: Worker[] = []
let threads: UnpackThreads

beforeEach(() => {
  started = []
  threads = new UnpackThreads((worker) => started.push(worker))
})
afterEach(async () => {
  for (const worker of started) await worker.terminate()
})

async function unpack(name: string, bytes: Buffer): Promise<string> {
  const folder = tempFolder({ [`${name}.mar`]: bytes })
  const inThread = (task: UnpackTask) => threads.unpack(task)
  await unpackArchive(join(folder, `${name}.mar`), join(folder, name), { unpack: inThread })
  return join(folder, name)
}

function good(content: string): Buffer {
  return rawZip([{ name: 'file.txt', content }])
}

test('archives after one another are unpacked by one thread, each as its own', async () => {
  for (const content of ['first', 'second', 'third'])
    expect(readFileSync(join(await unpack('model', good(content)), 'file.txt'), 'utf8')).toBe(content)
  expect(started).toHaveLength(1)
})

test('many archives at once need two threads', async () => {
  const folders = await Promise.all(Array.from({ length: 12 }, (_, i) => unpack(`m${i}`, good(`${i}`))))
  expect(folders.map((folder) => readFileSync(join(folder, 'file.txt'), 'utf8'))).toEqual(
    Array.from({ length: 12 }, (_, i) => `${i}`),
  )
  expect(started).toHaveLength(2)
})

test('a thread that failed at an archive is not used again, and the next archive is unpacked', async () => {
  const error = await failure(unpack('bad', Buffer.from('no archive')))
  expect(error.code).toBe('INVALID_ARCHIVE')
  const [first] = started
  expect(first!.threadId).toBe(-1)
  expect(existsSync(join(await unpack('model', good('x')), 'file.txt'))).toBe(true)
  expect(started).toHaveLength(2)
})

test('a thread that cannot be started fails its archive alone, and takes no turn from others', async () => {
  let full = true
  threads = new UnpackThreads((worker) => {
    started.push(worker)
    if (full) throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
  })
  for (let i = 0; i < 3; i += 1) {
    const { code, message } = await failure(unpack('model', good('x')))
    expect([code, message]).toEqual(['INTERNAL', 'The archive could not be unpacked: EAGAIN'])
  }
  full = false
  expect(existsSync(join(await unpack('model', good('x')), 'file.txt'))).toBe(true)
})

test('what takes too long is ended with its thread', async () => {
  const folder = tempFolder({ 'model.mar': good('x') })
  const unpacking = unpackArchive(join(folder, 'model.mar'), join(folder, 'model'), {
    limits: { timeout: 0.001 },
    unpack: (task) => threads.unpack(task),
  })
  const { code, message } = await failure(unpacking)
  expect([code, message]).toEqual([
    'INVALID_ARCHIVE',
    expect.stringMatching(/^The archive takes longer than 0\.001 s to unpack/),
  ])
  expect([started[0]!.threadId, readdirSync(folder)]).toEqual([-1, ['model.mar']])
})

test('what is called off is ended with its thread', async () => {
  const folder = tempFolder({ 'model.mar': good('x') })
  const stop = new AbortController()
  const unpacking = unpackArchive(join(folder, 'model.mar'), join(folder, 'model'), {
    unpack: (task) => {
      const unpacked = threads.unpack(task, stop.signal)
      setImmediate(() => stop.abort())
      return unpacked
    },
  })
  expect((await failure(unpacking)).code).toBe('SHUTTING_DOWN')
  expect([started[0]!.threadId, readdirSync(folder)]).toEqual([-1, ['model.mar']])
})

test('a thread that is not used any more ends by itself', async () => {
  await unpack('model', good('x'))
  const [thread] = started
  await new Promise((resolve) => thread!.once('exit', resolve))
  await unpack('model', good('y'))
  expect(started).toHaveLength(2)
})

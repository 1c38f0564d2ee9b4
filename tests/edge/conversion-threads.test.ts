import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { type Converted, ConversionThreads } from '../../frontend/edge/conversion-threads.ts'

/** What conversion-thread.mjs has. */
interface Table extends Record<string, (task: never) => Converted<unknown>> {
  echo: (task: { body: Uint8Array }) => Converted<{ body: Uint8Array; threadId: number }>
  held: (task: { gate: SharedArrayBuffer; number: number }) => Converted<number>
  hog: (task: object) => Converted<never>
  exit: (task: object) => Converted<never>
}

const ENTRY = new URL('conversion-thread.mjs', import.meta.url)
/** Conversions that may wait, and threads at most. */
const [MAX_WAITING, MAX_THREADS] = [64, 4]
const body = new Uint8Array([1, 2, 3])

let started: Worker[]
const onThread = (worker: Worker): void => void started.push(worker)

beforeEach(() => {
  started = []
})

afterEach(async () => {
  await Promise.all(started.map((worker) => worker.terminate()))
})

/** Node.js 24 ends the process, or hangs, where it should end a thread that is out of memory. */
const threadsRunOut = Number.parseInt(process.versions.node) < 22

;(threadsRunOut ? test : test.skip)(
  'a conversion that takes too much memory fails alone (Node.js 20)',
  async () => {
    const threads = new ConversionThreads<Table>(ENTRY, { heapMb: 32, onThread })
    const hog = threads.run('hog', {})
    const after = threads.run('echo', { body })
    await expect(hog).rejects.toMatchObject({ code: 'OUT_OF_MEMORY' })
    expect((await after).body).toEqual(body)
  },
)

test('a conversion that ends its thread fails alone', async () => {
  const threads = new ConversionThreads<Table>(ENTRY, { onThread })
  const last = threads.run('exit', {})
  const after = threads.run('echo', { body })
  await expect(last).rejects.toMatchObject({ code: 'INTERNAL' })
  expect((await after).body).toEqual(body)
})

test('64 conversions wait for a thread, one more is refused, and those that wait are done in order', async () => {
  const threads = new ConversionThreads<Table>(ENTRY, { onThread })
  const gate = new SharedArrayBuffer(8)
  const done: number[] = []
  const codes: string[] = []
  const all = Array.from({ length: MAX_THREADS + MAX_WAITING + 2 }, async (_, number) => {
    try {
      done.push(await threads.run('held', { gate, number }))
    } catch (error) {
      codes.push((error as { code: string }).code)
    }
  })
  const accepted = started.length + MAX_WAITING
  Atomics.store(new Int32Array(gate), 0, 1)
  Atomics.notify(new Int32Array(gate), 0)
  await Promise.all(all)
  expect(started.length).toBeGreaterThan(0)
  expect(started.length).toBeLessThanOrEqual(MAX_THREADS)
  expect(codes).toEqual(Array<string>(all.length - accepted).fill('QUEUE_FULL'))
  expect([...done].sort((a, b) => a - b)).toEqual(Array.from({ length: accepted }, (_, number) => number))
  expect(new Int32Array(gate)[1]).toBe(accepted)
  if (started.length === 1) expect(done).toEqual([...done].sort((a, b) => a - b))
})

test('a thread without work ends, and another one starts when there is some', async () => {
  const threads = new ConversionThreads<Table>(ENTRY, { idleMs: 1, onThread })
  const first = await threads.run('echo', { body })
  await once(started[0]!, 'exit')
  const second = await threads.run('echo', { body })
  expect(second.threadId).not.toBe(first.threadId)
  expect(started).toHaveLength(2)
})

test('a thread with work to come stays', async () => {
  const threads = new ConversionThreads<Table>(ENTRY, { onThread })
  const first = await threads.run('echo', { body })
  const second = await threads.run('echo', { body })
  expect(second.threadId).toBe(first.threadId)
  expect(started).toHaveLength(1)
})

import { closeSync, constants, openSync, readSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, jest, test } from '@jest/globals'
import { ConsoleWriter } from '../../frontend/observe/logs/console-writer.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

const MIB = 1024 * 1024
const PIPE_BYTES = 65_536
const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

const open = new Set<number>()

function opened(path: string, flags: number): number {
  const fd = openSync(path, flags)
  open.add(fd)
  return fd
}

function close(fd: number): void {
  if (open.delete(fd)) closeSync(fd)
}

afterEach(() => {
  jest.restoreAllMocks()
  open.forEach(close)
})

interface Rig {
  console: ConsoleWriter
  warnings: string[]
}

/** Writes to that descriptor as a server does to its stdout. */
function writerTo(fd: number): Rig {
  const console = new ConsoleWriter(fd as 1)
  const warnings: string[] = []
  console.warn = (message) => warnings.push(message)
  return { console, warnings }
}

/** With the end that a reader has, which reads when a test does. */
function writerToPipe(): Rig & { reader: number } {
  const path = join(tempDir(), 'pipe')
  execFileSync('mkfifo', [path])
  const reader = opened(path, O_RDONLY | O_NONBLOCK)
  return { reader, ...writerTo(opened(path, O_WRONLY | O_NONBLOCK)) }
}

/** What is in the pipe now. */
function read(reader: number): number {
  try {
    return readSync(reader, Buffer.alloc(MIB))
  } catch {
    return 0
  }
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function until(passes: () => boolean): Promise<void> {
  while (!passes()) await turn()
}

test('a reader that goes on reading is never kept waiting, however much is written at once', async () => {
  const { console, reader } = writerToPipe()
  const timers = jest.spyOn(globalThis, 'setTimeout')
  console.write('x'.repeat(4 * MIB))
  let bytes = 0
  let waits = 0
  await until(() => {
    // It reads when the pipe is full, and the end.
    const { length } = timers.mock.calls
    if (length > waits || bytes >= 4 * MIB - PIPE_BYTES) bytes += read(reader)
    waits = length
    return bytes === 4 * MIB
  })
  const delays = timers.mock.calls.map(([, ms]) => ms)
  expect(delays.length).toBeGreaterThan(10)
  expect(new Set(delays)).toEqual(new Set([1]))
  await console.end()
})

test('a full disk is one warning a minute, also when lines are dropped', async () => {
  const { console, warnings } = writerTo(opened('/dev/full', O_WRONLY))
  console.write('a line\n')
  await until(() => warnings.length > 0)
  for (let n = 0; n < 9; n += 1) console.write('x'.repeat(MIB))
  expect([console.lost, warnings]).toEqual([2, [expect.stringMatching(/console wait: ENOSPC/)]])
  console.endNow()
})

test('the running write counts among what may wait', () => {
  const { console } = writerToPipe()
  console.write('x'.repeat(5 * MIB))
  console.write('x'.repeat(5 * MIB))
  expect(console.lost).toBe(1)
  console.write('x'.repeat(MIB))
  expect(console.lost).toBe(1)
  console.endNow()
})

test('the warning that the reader has gone comes when the console takes no more lines', async () => {
  const { console, reader } = writerToPipe()
  close(reader)
  const lost: number[] = []
  console.warn = (message) => {
    console.write(`${message}\n`)
    lost.push(console.lost)
  }
  console.write('a line\n')
  await until(() => lost.length > 0)
  expect(lost).toEqual([1])
  await console.end()
})

import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { readLines, TURN_BYTES, TURN_LINES } from '../../frontend/workers/read-lines.ts'

beforeEach(() => {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] })
})
afterEach(() => {
  jest.useRealTimers()
})

test('what has no newline is a line after a second without output, or at the end', async () => {
  const stream = new PassThrough()
  const lines: string[] = []
  readLines(stream, (line) => lines.push(line))
  const write = async (text: string): Promise<void> => {
    stream.write(text)
    await turn()
  }
  await write('a\nb')
  jest.advanceTimersByTime(999)
  await write('c')
  jest.advanceTimersByTime(999)
  expect(lines).toEqual(['a'])
  jest.advanceTimersByTime(1)
  expect(lines).toEqual(['a', 'bc'])
  await write('\nd')
  expect(lines).toEqual(['a', 'bc'])
  stream.end()
  await turn()
  expect(lines).toEqual(['a', 'bc', 'd'])
})

test('colours are left out, other commands to a terminal are not', async () => {
  const stream = new PassThrough()
  const lines: string[] = []
  readLines(stream, (line) => lines.push(line))
  stream.end('\u001b[0;93m[W:onnxruntime] a\u001b[m\nb\u001b[2J\n')
  await turn()
  await turn()
  expect(lines).toEqual(['[W:onnxruntime] a', 'b\u001b[2J'])
})

test('a line that does not end is cut, and never kept in full', async () => {
  const stream = new PassThrough()
  const lines: string[] = []
  readLines(stream, (line) => lines.push(line))
  stream.write('x'.repeat(20_000))
  await turn()
  expect(lines.map(({ length }) => length)).toEqual([8192, 8192])
  stream.end('\n')
  await turn()
  expect(lines.map(({ length }) => length)).toEqual([8192, 8192, 20_000 - 2 * 8192])
})

test('a turn of the event loop reads so much of all processes, and each line in the end', async () => {
  const line = `${'x'.repeat(1023)}\n`
  const streams = [1, 2].map(() => new PassThrough({ highWaterMark: 2 ** 20 }))
  let bytes = 0
  for (const stream of streams) {
    readLines(stream, (text) => (bytes += text.length + 1))
    for (let chunk = 0; chunk < 64; chunk++) stream.write(line.repeat(16))
  }
  const turns: number[] = []
  for (let before = 0; bytes < 2 ** 21; before = bytes) {
    await turn()
    turns.push(bytes - before)
  }
  // The first look sees the turn that began before it, too.
  expect(Math.max(...turns)).toBeLessThanOrEqual(2 * (TURN_BYTES + 16 * 1024))
  expect(turns.reduce((sum, each) => sum + each, 0)).toBe(2 ** 21)
})

test('a turn of the event loop takes so many lines of a process, and each in its order in the end', async () => {
  const stream = new PassThrough({ highWaterMark: 2 ** 20 })
  const lines: string[] = []
  let others = 0
  readLines(stream, (line) => lines.push(line))
  const other = new PassThrough()
  readLines(other, () => (others += 1))
  const sent = Array.from({ length: 20_000 }, (_, n) => String(n % 10))
  stream.end(`${sent.join('\n')}\nlast`)
  const turns: number[] = []
  for (let before = 0; lines.length <= sent.length; before = lines.length) {
    other.write('a\n')
    await turn()
    turns.push(lines.length - before)
  }
  // The first look sees the turn that began before it, too.
  expect(Math.max(...turns)).toBeLessThanOrEqual(2 * TURN_LINES)
  expect(lines).toEqual([...sent, 'last'])
  // Nobody waits for the flood.
  expect(others).toBeGreaterThanOrEqual(turns.length - 2)
})

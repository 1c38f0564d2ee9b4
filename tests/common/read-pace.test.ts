import { PassThrough } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from '@jest/globals'
import { ReadPace } from '../../common/byte-flow.ts'

const TURN = 1_000

function flowing(count: number): PassThrough[] {
  return Array.from({ length: count }, () => new PassThrough().resume())
}

function paused(streams: readonly PassThrough[]): boolean[] {
  return streams.map((stream) => stream.isPaused())
}

test('the bytes of all streams count together, and those of earlier turns do not', async () => {
  const pace = new ReadPace(TURN)
  const [one, other] = flowing(2) as [PassThrough, PassThrough]
  pace.read(one, TURN)
  expect(one.isPaused()).toBe(false)
  pace.read(other, 1)
  expect(paused([one, other])).toEqual([false, true])
  await turn()
  expect(other.isPaused()).toBe(false)
  pace.read(one, TURN)
  pace.read(other, 0)
  expect(paused([one, other])).toEqual([false, false])
})

test('so many of those that wait go on in a turn, those that came first before others', async () => {
  const pace = new ReadPace(TURN, 2)
  const streams = flowing(5)
  for (const stream of streams) pace.read(stream, TURN + 1)
  expect(paused(streams)).toEqual([true, true, true, true, true])
  await turn()
  expect(paused(streams)).toEqual([false, false, true, true, true])
  await turn()
  expect(paused(streams)).toEqual([false, false, false, false, true])
  await turn()
  expect(paused(streams)).toEqual([false, false, false, false, false])
})

test('by default all go on in the next turn', async () => {
  const pace = new ReadPace(TURN)
  const streams = flowing(9)
  for (const stream of streams) pace.read(stream, TURN + 1)
  await turn()
  expect(paused(streams)).toEqual(streams.map(() => false))
})

test('a stream that its reader has paused is left to the reader', async () => {
  const pace = new ReadPace(TURN)
  const [stream] = flowing(1) as [PassThrough]
  stream.pause()
  pace.read(stream, TURN + 1)
  await turn()
  expect(stream.isPaused()).toBe(true)
})

test('who was first in a turn is the last in the next one', async () => {
  const pace = new ReadPace(TURN)
  const resumed: string[] = []
  const streams = ['a', 'b', 'c'].map((name) => {
    const stream = new PassThrough().resume()
    return stream.on('resume', () => resumed.push(name))
  })
  await turn()
  resumed.length = 0
  for (const stream of streams) pace.read(stream, TURN + 1)
  await turn()
  await turn()
  expect(resumed).toEqual(['b', 'c', 'a'])
})

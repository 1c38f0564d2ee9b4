import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { ArrivalPace } from '../../frontend/edge/arrival-pace.ts'

class FakeSocket extends EventEmitter {
  destroyed = false
  readonly remoteAddress: string | undefined

  constructor(remoteAddress: string | undefined) {
    super()
    this.remoteAddress = remoteAddress
  }

  destroy(): void {
    this.destroyed = true
  }
}

const SERVER = { listening: true }

let now: number
/** Numbers of the connections that were let in, in their order. */
let entered: number[]

beforeEach(() => {
  jest.useFakeTimers()
  now = 0
  entered = []
})

afterEach(() => {
  jest.useRealTimers()
})

function pass(ms: number): void {
  for (let k = 0; k < ms; k++) {
    now += 1
    jest.advanceTimersByTime(1)
  }
}

/** Connections of one address arrive, numbered from 0. What each was told. */
function arrive(pace: ArrivalPace, count: number, address: string | undefined): string[] {
  return sockets(count, address).map((socket, k) => pace.arrive(SERVER, socket, () => entered.push(k)))
}

function sockets(count: number, address: string | undefined): Socket[] {
  return Array.from({ length: count }, () => new FakeSocket(address) as unknown as Socket)
}

test('what one address opens beyond its rate waits, and enters at that rate and in its order', () => {
  const pace = new ArrivalPace(10, () => now)
  const told = arrive(pace, 25, '192.0.2.1')
  expect(told).toEqual([...new Array<string>(10).fill('entered'), ...new Array<string>(15).fill('waits')])
  expect([entered.length, pace.waiting]).toEqual([10, 15])
  pass(500)
  expect(entered.length).toBe(15)
  pass(1_000)
  expect(entered).toEqual(Array.from({ length: 25 }, (_, k) => k))
  expect(pace.waiting).toBe(0)
})

test('who comes later waits behind those who wait', () => {
  const pace = new ArrivalPace(10, () => now)
  arrive(pace, 11, '192.0.2.1')
  now += 100
  const [late] = sockets(1, '192.0.2.1')
  expect(pace.arrive(SERVER, late!, () => entered.push(99))).toBe('waits')
  pass(200)
  expect(entered.slice(-2)).toEqual([10, 99])
})

test.each([
  ['192.0.2.1', '192.0.2.2', 'entered'],
  ['2001:db8:1:2::1', '2001:db8:1:3::1', 'entered'],
  ['2001:db8:1:2::1', '2001:db8:1:2:ffff::9', 'waits'],
  ['192.0.2.1', '::ffff:192.0.2.1', 'waits'],
])('after many of %s, one of %s: %s', (many, other, turn) => {
  const pace = new ArrivalPace(3, () => now)
  arrive(pace, 4, many)
  expect(arrive(pace, 1, other)).toEqual([turn])
})

test('Unix sockets have no address and never wait, and a rate of 0 lets all in', () => {
  expect(new Set(arrive(new ArrivalPace(1, () => now), 50, undefined))).toEqual(new Set(['entered']))
  expect(new Set(arrive(new ArrivalPace(0, () => now), 50, '192.0.2.1'))).toEqual(new Set(['entered']))
})

test('who leaves while waiting neither enters nor costs the others a turn', () => {
  const pace = new ArrivalPace(10, () => now)
  const all = sockets(14, '192.0.2.1')
  all.forEach((socket, k) => pace.arrive(SERVER, socket, () => entered.push(k)))
  for (const left of all.slice(10, 13)) {
    left.emit('error', new Error('read ECONNRESET'))
    Object.assign(left, { destroyed: true })
  }
  pass(101)
  expect([entered.slice(10), pace.waiting]).toEqual([[13], 0])
})

test('at most 512 wait together; when some have entered, others may wait again', () => {
  const pace = new ArrivalPace(10, () => now)
  const told = arrive(pace, 530, '192.0.2.1')
  expect([told.indexOf('full'), told.lastIndexOf('waits')]).toEqual([522, 521])
  expect(arrive(pace, 1, '192.0.2.2')).toEqual(['entered'])
  pass(101)
  expect(arrive(pace, 2, '192.0.2.1')).toEqual(['waits', 'full'])
})

test('when the server listens no more, those that wait for it are closed and cost the others no turn', () => {
  const pace = new ArrivalPace(10, () => now)
  const server = { listening: true }
  const [...closed] = sockets(300, '192.0.2.1')
  closed.forEach((socket, k) => pace.arrive(server, socket, () => entered.push(k)))
  pace.arrive(SERVER, sockets(1, '192.0.2.1')[0]!, () => entered.push(999))
  server.listening = false
  pass(101)
  expect([entered.length, entered.at(-1), pace.waiting]).toEqual([11, 999, 0])
  expect(closed.filter(({ destroyed }) => destroyed).length).toBe(290)
})

import { describe, expect, test } from '@jest/globals'
import { itemCost } from '../../protocol/credit-stream.ts'
import { Batch, InFlight, type InFlightLink } from '../../frontend/workers/in-flight.ts'
import type { RunWatcher } from '../../frontend/jobs/scheduler.ts'
import { testJob, type TestJob } from '../support/jobs.ts'

const WINDOW = 1000

/** A request that a worker has; writes down what goes back to the worker. */
class Rig {
  readonly told: string[] = []
  readonly asked: TestJob = testJob('r1')
  readonly entry: InFlight
  readonly #link: InFlightLink = {
    window: WINDOW,
    knowsCredit: true,
    cancel: ({ id }, reason) => this.told.push(`cancel ${id} ${reason}`),
    credit: (id, bytes) => this.told.push(`credit ${id} ${bytes}`),
    input: ({ id }, data) => this.told.push(`input ${id} ${data === undefined ? 'end' : String(data)}`),
    discarded: () => this.told.push('discarded'),
    withdraw: () => this.told.push('withdraw'),
    unexpected: ({ id }) => this.told.push(`unexpected ${id}`),
    overdrawn: ({ id }) => this.told.push(`overdrawn ${id}`),
  }

  constructor(watcher?: RunWatcher) {
    const batch = new Batch([this.asked.job], watcher)
    this.entry = new InFlight(7, this.asked.job, batch, 1, this.#link)
    this.asked.job.started(this.entry)
  }

  /** An item that costs this many bytes of the window. */
  item(cost: number): void {
    const chunk = Buffer.alloc(cost - itemCost(0), 'x')
    this.entry.item(chunk, 0, chunk.byteLength)
  }

  respond(body: string, mark?: 'true' | 'false'): boolean {
    return this.entry.respond({ type: 'response', id: 7, body: Buffer.from(body), ts_stream_next: mark })
  }
}

describe('credit', () => {
  test('goes back in portions of half a window', () => {
    const rig = new Rig()
    rig.item(300)
    rig.item(199)
    expect(rig.told).toEqual([])
    rig.item(100)
    expect(rig.told).toEqual(['credit 7 599'])
    rig.item(500)
    expect(rig.told).toEqual(['credit 7 599', 'credit 7 500'])
  })

  test('may be exceeded by one item; the next one is a breach and does not reach the client', () => {
    const rig = new Rig()
    rig.asked.sink.room = false
    rig.item(999)
    rig.item(5000)
    expect(rig.told).toEqual([])
    const calls = [...rig.asked.sink.calls]
    rig.item(100)
    rig.respond('too much', 'true')
    expect(rig.told).toEqual(['overdrawn 7', 'overdrawn 7'])
    expect(rig.asked.sink.calls).toEqual(calls)
  })

  test('waits while the client takes nothing, and goes back whole when it does', () => {
    const rig = new Rig()
    rig.asked.sink.room = false
    rig.item(600)
    rig.item(600)
    expect(rig.told).toEqual([])
    rig.asked.sink.room = true
    rig.asked.job.drained()
    expect(rig.told).toEqual(['credit 7 1200'])
  })

  test('is given for the overhead of an empty item too', () => {
    const rig = new Rig()
    for (let k = 0; k < 8; k += 1) rig.respond('', 'true')
    expect(rig.told).toEqual([`credit 7 ${8 * itemCost(0)}`])
  })

  test('is not given for the last item of a stream', () => {
    const rig = new Rig()
    rig.respond('x'.repeat(400), 'true')
    expect(rig.respond('x'.repeat(600), 'false')).toBe(true)
    expect(rig.told).toEqual([])
  })
})

test('the first item opens the stream, the last one closes it', () => {
  const rig = new Rig()
  rig.entry.item(Buffer.from('-one-'), 1, 4)
  rig.entry.item(Buffer.from('-two-'), 1, 4)
  expect(rig.respond('', 'true')).toBe(false)
  rig.respond('end', 'false')
  expect(rig.asked.sink.calls).toEqual(['open 200', 'write one', 'write two', 'write ', 'write end', 'close'])
})

test('a request that ended early is cancelled with its reason; what still comes of it is discarded, without credit', () => {
  const rig = new Rig()
  rig.item(100)
  rig.asked.job.cancel('client left')
  for (let k = 0; k < 3; k += 1) rig.item(600)
  expect(rig.respond('', 'false')).toBe(true)
  expect(rig.told).toEqual(['cancel 7 client left', ...Array<string>(4).fill('discarded')])
  expect(rig.asked.sink.calls).toHaveLength(2)
})

test('whoever gave the batch may change the headers of the answer', () => {
  const rig = new Rig({
    answering: (_job, headers) => ({ ...headers, added: 'yes' }),
    released: () => undefined,
  })
  let head: object | undefined
  rig.asked.sink.whole = (reply) => (head = reply)
  rig.entry.respond({ type: 'response', id: 7, body: Buffer.from('x'), headers: { own: 'a' } })
  expect(head).toMatchObject({ headers: { own: 'a', added: 'yes' } })
})

test('further inputs are passed on, and their end', () => {
  const rig = new Rig()
  rig.entry.input(Buffer.from('more'))
  rig.entry.input(undefined)
  expect(rig.told).toEqual(['input 7 more', 'input 7 end'])
})

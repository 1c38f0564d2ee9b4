import { describe, expect, test } from '@jest/globals'
import { itemCost } from '../../protocol/credit-stream.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import { ServeError } from '../../common/errors.ts'
import type { Outlet } from '../../backend-worker/outlet.ts'
import { ResponseStream } from '../../backend-worker/response-stream.ts'

const COST = 100
const ITEM = Buffer.alloc(COST - itemCost(0), 'x')

/** A stream whose messages to the frontend the test reads. */
class Rig {
  readonly sent: string[] = []
  readonly heard: string[] = []
  readonly stream: ResponseStream

  constructor(window: number, maxUnsentBytes = 10_000) {
    const outlet: Outlet = {
      send: (message: FromWorker) => {
        if (message.type === 'response') this.sent.push(`response ${message.ts_stream_next ?? 'whole'}`)
        else if (message.type === 'failure') this.sent.push(`failure ${message.error.code}`)
        else this.sent.push(message.type)
      },
      sendItem: () => this.sent.push('item'),
      flushEarly: () => undefined,
      flush: () => undefined,
      unsentBytes: 0,
    }
    const request = { id: 1, requestId: 'r', method: 'handle' as const, headers: '', parts: [], window }
    this.stream = new ResponseStream(
      request,
      outlet,
      { maxResponseBytes: 1000, maxUnsentBytes },
      {
        streamGone: () => this.heard.push('gone'),
        streamEnded: () => this.heard.push('ended'),
      },
    )
  }

  push(count: number): void {
    for (let k = 0; k < count; k += 1) this.stream.push(ITEM)
  }

  get items(): number {
    return this.sent.filter((word) => word === 'item').length
  }
}

describe('the window', () => {
  test('holds as many items as it has bytes for, the last of which may overdraw it', () => {
    const full = new Rig(10 * COST)
    full.push(20)
    expect(full.items).toBe(10)
    const odd = new Rig(10 * COST + 1)
    odd.push(20)
    expect(odd.items).toBe(11)
  })

  test('lets as many of those that wait go as credit comes back, in order and no more', () => {
    const rig = new Rig(COST)
    rig.push(8)
    expect(rig.items).toBe(1)
    rig.stream.credit(3 * COST)
    expect(rig.items).toBe(4)
    rig.stream.credit(COST)
    expect(rig.items).toBe(5)
    expect(rig.stream.hasRoom).toBe(false)
  })

  test('an overdraft is paid back first', () => {
    const rig = new Rig(1)
    rig.push(2)
    rig.stream.credit(COST - 1)
    expect(rig.items).toBe(1)
    rig.stream.credit(1)
    expect(rig.items).toBe(2)
  })

  test('room is said when there is some, not while items still wait', async () => {
    const rig = new Rig(COST)
    rig.push(3)
    let room = false
    void rig.stream.room().then(() => (room = true))
    rig.stream.credit(2 * COST)
    await new Promise(setImmediate)
    expect([rig.items, room]).toEqual([3, false])
    rig.stream.credit(1)
    await new Promise(setImmediate)
    expect(room).toBe(true)
  })
})

describe('the end', () => {
  test('comes after all items that wait, once', () => {
    const rig = new Rig(COST)
    rig.push(3)
    rig.stream.finish(Buffer.from('end'))
    rig.stream.finish(Buffer.from('again'))
    expect(rig.sent).toEqual(['item'])
    rig.stream.credit(COST)
    expect(rig.sent).toEqual(['item', 'item'])
    rig.stream.credit(COST)
    expect(rig.sent).toEqual(['item', 'item', 'item', 'response false'])
    expect(rig.heard).toEqual(['ended'])
  })

  test('needs no window', () => {
    const rig = new Rig(1)
    rig.push(1)
    rig.stream.finish(Buffer.from('end'))
    expect(rig.sent).toEqual(['item', 'response false'])
  })

  test('of a stream without items is a whole answer', () => {
    const rig = new Rig(1)
    rig.stream.finish(Buffer.from('all'))
    expect(rig.sent).toEqual(['response whole'])
  })
})

describe('a cancelled stream', () => {
  test('aborts its signal in the same turn, drops what waits, and says its end when the handler returns', () => {
    const rig = new Rig(COST)
    rig.push(3)
    const { signal } = rig.stream
    rig.stream.cancel('client left')
    expect(signal.aborted).toBe(true)
    rig.stream.credit(10 * COST)
    rig.push(1)
    expect([rig.sent, rig.heard]).toEqual([['item'], ['gone']])
    rig.stream.finish(Buffer.from('end'))
    expect([rig.sent, rig.heard]).toEqual([
      ['item', 'failure CANCELLED'],
      ['gone', 'ended'],
    ])
  })

  test('has an aborted signal with its reason, also when that is asked for only now', () => {
    const rig = new Rig(COST)
    rig.stream.cancel('deadline')
    expect(rig.stream.signal.aborted).toBe(true)
    expect(rig.stream.signal.reason).toBe(rig.stream.gone)
  })

  test('that had returned and waited for credit ends at once', () => {
    const rig = new Rig(COST)
    rig.push(2)
    rig.stream.finish(Buffer.from('end'))
    rig.stream.cancel('client left')
    expect(rig.sent).toEqual(['item', 'failure CANCELLED'])
  })

  test('wakes a sender that waits for room', async () => {
    const rig = new Rig(COST)
    rig.push(1)
    const room = rig.stream.room()
    rig.stream.cancel('client left')
    await room
    expect(rig.stream.gone).toMatchObject({ name: 'AbortError' })
  })

  test('has one reason: the first', () => {
    const rig = new Rig(COST)
    rig.stream.fail(new ServeError('HANDLER_FAILED', 'x'))
    rig.stream.cancel('client left')
    expect([rig.sent, rig.heard]).toEqual([['failure HANDLER_FAILED'], ['ended']])
    expect(rig.stream.signal.aborted).toBe(false)
  })
})

test('what waits beyond the limit fails the stream', () => {
  const rig = new Rig(COST, 3 * COST)
  rig.push(4)
  expect(rig.stream.gone).toBeUndefined()
  rig.push(1)
  expect(rig.stream.gone).toMatchObject({ code: 'SEND_OVERFLOW' })
})

test('bytes that have left the waiting line count no more for its limit', () => {
  const rig = new Rig(COST, 3 * COST)
  rig.push(1)
  for (let k = 0; k < 10; k += 1) {
    rig.push(1)
    rig.stream.credit(COST)
  }
  expect([rig.stream.gone, rig.items]).toEqual([undefined, 11])
})

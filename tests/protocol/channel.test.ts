import { once } from 'node:events'
import type { Socket } from 'node:net'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import { frontendChannel, workerChannel, type Channel } from '../../protocol/channel.ts'
import { frameOf } from '../support/frames.ts'
import type { ServeError } from '../../common/errors.ts'
import type { FromWorker, ToWorker } from '../../protocol/messages.ts'
import { allAsMessages } from '../support/all-as-messages.ts'
import { socketPair } from '../support/socket-pair.ts'

interface End {
  channel: Channel<ToWorker>
  messages: FromWorker[]
  closed: Promise<ServeError | undefined>
  arrived(count: number): Promise<void>
}

function frontend(socket: Socket, maxFrameBytes = 1000, onMessage?: (message: FromWorker) => void): End {
  const messages: FromWorker[] = []
  let wake = (): void => undefined
  let close: (error?: ServeError) => void
  const closed = new Promise<ServeError | undefined>((resolve) => (close = resolve))
  const channel = frontendChannel(
    socket,
    maxFrameBytes,
    allAsMessages(
      (message) => {
        messages.push(message)
        wake()
        onMessage?.(message)
      },
      (error) => close(error),
    ),
  )
  const arrived = async (count: number): Promise<void> => {
    while (messages.length < count) await new Promise<void>((resolve) => (wake = resolve))
  }
  return { channel, messages, closed, arrived }
}

function worker(socket: Socket): Channel<FromWorker> {
  return workerChannel(socket, 1000, { onMessage: () => undefined, onClose: () => undefined })
}

test('messages arrive in order, both ways', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  const nonces: number[] = []
  const other = workerChannel(far, 1000, {
    onMessage: (message) => {
      if (message.type !== 'ping') return
      nonces.push(message.nonce)
      other.send({ type: 'pong', nonce: message.nonce })
    },
    onClose: () => undefined,
  })
  for (let nonce = 0; nonce < 100; nonce++) end.channel.send({ type: 'ping', nonce })
  await end.arrived(100)
  expect(nonces).toEqual([...nonces.keys()])
  expect(end.messages).toEqual(nonces.map((nonce) => ({ type: 'pong', nonce })))
})

test('messages of one turn, also of its microtasks, leave in one write', async () => {
  const [near, far] = await socketPair()
  const channel = worker(far)
  const chunks: Buffer[] = []
  near.on('data', (chunk: Buffer) => chunks.push(chunk))
  const writes: number[] = []
  const writev = far._writev!.bind(far)
  far._writev = (list, done) => {
    writes.push(list.length)
    writev(list, done)
  }
  for (let nonce = 0; nonce < 50; nonce++) channel.send({ type: 'pong', nonce })
  for (let nonce = 0; nonce < 50; nonce++) {
    await Promise.resolve()
    channel.send({ type: 'pong', nonce })
  }
  channel.close()
  await once(near, 'end')
  expect(writes.length).toBeLessThanOrEqual(2)
  expect(Buffer.concat(chunks).byteLength).toBe(frameOf({ type: 'pong', nonce: 1 }).byteLength * 100)
})

test('a plain end closes without an error, after all that was sent', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  const channel = worker(far)
  for (let nonce = 0; nonce < 1000; nonce++) channel.send({ type: 'pong', nonce })
  channel.close()
  expect(await end.closed).toBeUndefined()
  expect(end.messages).toHaveLength(1000)
})

test('what is sent after the close is dropped', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  const channel = worker(far)
  channel.close()
  channel.send({ type: 'pong', nonce: 1 })
  expect(await end.closed).toBeUndefined()
  expect(end.messages).toEqual([])
})

test('a frame over the limit closes the connection with the reason, before its body was sent', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  far.on('error', () => undefined)
  far.write(Buffer.from('7fffffff050300000001', 'hex'))
  expect(await end.closed).toMatchObject({ code: 'PROTOCOL', message: expect.stringContaining('exceeds') })
})

test('a malformed message closes the connection and nothing after it is delivered', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  far.on('error', () => undefined)
  const bad = frameOf({ type: 'log', level: 'loud', message: '' } as never)
  far.write(Buffer.concat([frameOf({ type: 'pong', nonce: 1 }), bad, frameOf({ type: 'pong', nonce: 2 })]))
  expect(await end.closed).toMatchObject({ code: 'PROTOCOL', message: 'Malformed message: log' })
  expect(end.messages).toEqual([{ type: 'pong', nonce: 1 }])
})

test('a receiver that throws closes the connection', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near, 1000, () => {
    throw new Error('bug')
  })
  far.on('error', () => undefined)
  worker(far).send({ type: 'pong', nonce: 1 })
  expect(await end.closed).toMatchObject({ code: 'INTERNAL', detail: expect.stringContaining('bug') })
})

test('a reset connection says so', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  far.resetAndDestroy()
  expect(await end.closed).toMatchObject({ code: 'WORKER_LOST' })
})

test('a header called constructor is a header like any other', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near)
  const headers = { constructor: 'x', toString: 'y' } as unknown as Record<string, string>
  worker(far).send({ type: 'response', id: 1, body: Buffer.from(''), headers })
  await end.arrived(1)
  expect(end.messages[0]).toMatchObject({ headers: { constructor: 'x', toString: 'y' } })
})

test('unsent bytes are counted until the kernel takes them', async () => {
  const [near, far] = await socketPair()
  near.pause()
  const channel = worker(far)
  const body = Buffer.alloc(1_000_000)
  for (let i = 0; i < 20; i++) channel.send({ type: 'response', id: i, body })
  expect(channel.unsentBytes).toBeGreaterThan(10_000_000)
  near.resume()
  await once(far, 'drain')
  expect(channel.unsentBytes).toBe(0)
})

let now = 0

afterEach(() => {
  jest.restoreAllMocks()
})

describe('a sender that may compute next', () => {
  /** A clock that the test moves, and a send that says how many writes it caused by itself. */
  async function sender(): Promise<() => number> {
    const [near, far] = await socketPair()
    near.resume()
    const channel = worker(far)
    now = 1000
    jest.spyOn(performance, 'now').mockImplementation(() => now)
    await channel.flushEarly()
    const write = jest.spyOn(far, 'write')
    return () => {
      const before = write.mock.calls.length
      channel.sendItem(1, Buffer.from('item'))
      void channel.flushEarly()
      return write.mock.calls.length - before
    }
  }
  const times = (count: number, send: () => number): number[] => Array.from({ length: count }, send)

  test('has its first sends leave at once, and the others of a quick row together', async () => {
    const send = await sender()
    expect(times(8, send)).toEqual([1, 1, 1, 1, 1, 0, 0, 0])
  })

  test('begins a new row with a pause', async () => {
    const send = await sender()
    times(8, send)
    now += 0.6
    expect(times(6, send)).toEqual([1, 1, 1, 1, 1, 0])
  })

  test('has what it sends after computing leave at once, also when it awaits nothing', async () => {
    const send = await sender()
    times(8, send)
    for (let k = 0; k < 5; k += 1) {
      now += 0.6
      expect(send()).toBe(1)
    }
  })
})

describe('a sender is given a turn of the event loop', () => {
  /** A channel whose clock the test moves. */
  async function senders(): Promise<Channel<FromWorker>> {
    const [near, far] = await socketPair()
    near.resume()
    const channel = worker(far)
    now = 1000
    jest.spyOn(performance, 'now').mockImplementation(() => now)
    await channel.flushEarly()
    return channel
  }

  test('when it has computed since its last send', async () => {
    const channel = await senders()
    now += 0.6
    expect(channel.flushEarly()).toBeInstanceOf(Promise)
  })

  test('not while sends follow each other quickly, but when they have held the loop for 10 ms', async () => {
    const channel = await senders()
    const given: number[] = []
    for (let k = 1; k <= 50; k += 1) {
      now += 0.25
      if (channel.flushEarly() !== undefined) given.push(k)
    }
    expect(given[0]).toBe(40)
    await channel.flushEarly()
    now += 0.25
    expect(channel.flushEarly()).toBeUndefined()
  })

  test('in which what it sent has left, and what has come is heard', async () => {
    const [near, far] = await socketPair()
    const end = frontend(near)
    const heard: ToWorker[] = []
    const channel = workerChannel(far, 1000, {
      onMessage: (message) => heard.push(message),
      onClose: () => undefined,
    })
    // Each side requests the next message only after it has received the previous one.
    for (let k = 1; k <= 5; k += 1) {
      channel.send({ type: 'pong', nonce: k })
      while (end.messages.length < k) {
        const before = performance.now()
        while (performance.now() < before + 1);
        await channel.flushEarly()
      }
      end.channel.send({ type: 'ping', nonce: k })
      while (heard.length < k) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(heard).toHaveLength(5)
  })

  test('together with all that ask in the same turn', async () => {
    const channel = await senders()
    now += 1
    const first = channel.flushEarly()
    now += 1
    expect(channel.flushEarly()).toBe(first)
  })
})

test('who pauses the socket gets no further message until it is resumed, and each in its order', async () => {
  const [near, far] = await socketPair()
  const end = frontend(near, 1000, () => near.pause())
  const other = worker(far)
  for (let nonce = 0; nonce < 20; nonce++) other.send({ type: 'pong', nonce })
  other.close()
  for (let count = 1; count <= 20; count++) {
    await end.arrived(count)
    await new Promise((resolve) => setImmediate(resolve))
    expect(end.messages).toHaveLength(count)
    near.resume()
  }
  expect(await end.closed).toBeUndefined()
  expect(end.messages).toEqual([...Array(20).keys()].map((nonce) => ({ type: 'pong', nonce })))
})

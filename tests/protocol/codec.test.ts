import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { decodeFromWorker, decodeToWorker } from '../../protocol/codec.ts'
import { ERROR_CODES, ServeError } from '../../common/errors.ts'
import { FRAME, type FrameType, HEADER_BYTES, ITEM, writeHeader } from '../../protocol/frame.ts'
import { itemCost } from '../../protocol/credit-stream.ts'
import { frameOf } from '../support/frames.ts'
import { anyFromWorker, anyToWorker, fromWorker, toWorker } from './messages.ts'

const packr = new Packr({ useRecords: false })
const protocolError = expect.objectContaining({ name: 'ServeError', code: 'PROTOCOL' })

/** Credit goes both ways, with the same frame. */
const BOTH_WAYS: readonly string[] = ['taken', 'credit']

describe.each(Object.entries(fromWorker))('%s from the worker', (type, message) => {
  test('comes back as it was sent, and no frontend message is taken for it', () => {
    fc.assert(
      fc.property(message, (sent) => {
        const frame = frameOf(sent as never)
        expect(frame.readUInt32BE(0)).toBe(frame.byteLength - HEADER_BYTES)
        expect(decodeFromWorker(frame)).toEqual(sent)
        if (!BOTH_WAYS.includes(type)) expect(() => decodeToWorker(frame)).toThrow(protocolError)
      }),
      { numRuns: 30 },
    )
  })
})

describe.each(Object.entries(toWorker))('%s to the worker', (type, message) => {
  test('comes back as it was sent, and no worker message is taken for it', () => {
    fc.assert(
      fc.property(message, (sent) => {
        const frame = frameOf(sent as never)
        expect(decodeToWorker(frame)).toEqual(sent)
        if (!BOTH_WAYS.includes(type)) expect(() => decodeFromWorker(frame)).toThrow(protocolError)
      }),
      { numRuns: 30 },
    )
  })
})

test('the bytes of a stream item are the header and the body', () => {
  const frame = frameOf({
    type: 'response',
    id: 0x01020304,
    body: Buffer.from('item'),
    ts_stream_next: 'true',
  })
  expect(frame.toString('hex')).toBe(`00000004050301020304${Buffer.from('item').toString('hex')}`)
})

test('a request is a map with the sizes of its parts, and then their bytes', () => {
  const parts = [
    { name: 'a', data: Buffer.from('first') },
    { name: 'b', contentType: 'text/plain', data: Buffer.from('second') },
  ]
  const request = { method: 'handle', id: 1, requestId: 'r', headers: '', parts, window: 9 } as const
  const frame = frameOf({ type: 'predict', requests: [request] as never })
  const size = frame.readUInt32BE(HEADER_BYTES)
  const map = packr.unpack(frame.subarray(HEADER_BYTES + 4, HEADER_BYTES + 4 + size)) as unknown
  const heads = [
    { name: 'a', size: 5 },
    { name: 'b', contentType: 'text/plain', size: 6 },
  ]
  expect(map).toEqual({ requests: [{ ...request, parts: heads }] })
  expect(frame.subarray(HEADER_BYTES + 4 + size).toString()).toBe('firstsecond')
})

test('binary values are views of the frame, not copies', () => {
  const frame = frameOf({ type: 'response', id: 1, body: Buffer.from('abc') })
  const message = decodeFromWorker(frame)
  expect(message.type === 'response' && message.body.buffer).toBe(frame.buffer)
})

function withPayload(type: FrameType, payload: Uint8Array, flags = 0): Buffer {
  const frame = Buffer.alloc(HEADER_BYTES + payload.byteLength)
  writeHeader(frame, 0, payload.byteLength, type, flags, 1)
  frame.set(payload, HEADER_BYTES)
  return frame
}

/** Every field with every kind of wrong value, in any depth. */
function* spoiled(value: unknown): Generator {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array) return
  for (const [key, inner] of Object.entries(value)) {
    const put = (other: unknown): unknown =>
      Array.isArray(value)
        ? value.map((item, i) => (String(i) === key ? other : (item as unknown)))
        : { ...value, [key]: other }
    for (const wrong of [null, new Date(0), [[]], -1.5, NaN]) {
      if (typeof inner !== typeof wrong || typeof inner === 'object') yield put(wrong)
    }
    for (const deeper of spoiled(inner)) yield put(deeper)
  }
}

const maps = fc.oneof(
  fromWorker.ready,
  fromWorker.log,
  fromWorker.withdrawn,
  fromWorker.metric,
  toWorker.withdraw,
)

test('a map with one wrong value anywhere, or without a required field, is refused', () => {
  fc.assert(
    fc.property(maps, (message) => {
      const { type, ...fields } = message as { type: keyof typeof FRAME } & Record<string, unknown>
      const required = Object.keys(fields).filter((key) => key !== 'requestId')
      const without = required.map((key) => ({ ...fields, [key]: undefined }))
      for (const wrong of [...spoiled(fields), ...without]) {
        const frame = withPayload(FRAME[type], packr.pack(wrong))
        expect(() => decodeFromWorker(frame)).toThrow(protocolError)
        expect(() => decodeToWorker(frame)).toThrow(protocolError)
      }
    }),
    { numRuns: 15 },
  )
})

test('a request or a head with one wrong value is refused', () => {
  const request = {
    method: 'handle',
    id: 1,
    requestId: 'r',
    headers: '',
    parts: [{ name: 'a', size: 0 }],
    window: 9,
  }
  const head = { status: 200, reason: 'fine', contentType: 'text/plain', headers: { a: 'b' } }
  const framed = (type: FrameType, map: unknown, flags = 0): Buffer => {
    const packed = packr.pack(map)
    const size = Buffer.alloc(4)
    size.writeUInt32BE(packed.byteLength)
    return withPayload(type, Buffer.concat([size, packed]), flags)
  }
  expect(decodeToWorker(framed(FRAME.predict, { requests: [request] }))).toHaveProperty('type', 'predict')
  expect(decodeFromWorker(framed(FRAME.response, head, 4))).toMatchObject(head)
  for (const wrong of spoiled({ requests: [request] }))
    expect(() => decodeToWorker(framed(FRAME.predict, wrong))).toThrow(protocolError)
  for (const wrong of spoiled(head))
    expect(() => decodeFromWorker(framed(FRAME.response, wrong, 4))).toThrow(protocolError)
})

test('a metric with more values than a worker sends at once is refused', () => {
  const metric = (count: number): Buffer => {
    const lists = { values: Array<number>(count).fill(1), requestIds: Array<string>(count).fill('') }
    return frameOf({ type: 'metric', name: 'm', kind: 'histogram', unit: 'ms', dimensions: {}, ...lists })
  }
  expect(decodeFromWorker(metric(1024))).toMatchObject({ type: 'metric' })
  expect(() => decodeFromWorker(metric(1025))).toThrow(protocolError)
})

test('unknown types and flags are refused', () => {
  const types = Array.from({ length: 256 }, (_, type) => type as FrameType)
  const known: readonly number[] = Object.values(FRAME)
  for (const type of types.filter((each) => !known.includes(each))) {
    expect(() => decodeFromWorker(withPayload(type, Buffer.alloc(0)))).toThrow('unknown type')
    expect(() => decodeToWorker(withPayload(type, Buffer.alloc(0)))).toThrow('unknown type')
  }
  for (const flags of [2, 6, 8, 128])
    expect(() => decodeFromWorker(withPayload(FRAME.response, Buffer.alloc(0), flags))).toThrow(
      'unknown flags',
    )
  expect(() => decodeFromWorker(withPayload(FRAME.pong, Buffer.alloc(0), 1))).toThrow('unknown flags')
  expect(() => decodeToWorker(withPayload(FRAME.predict, Buffer.alloc(0), ITEM))).toThrow('unknown flags')
})

test('garbage, and messages with any bytes changed, are refused or are whole messages again', () => {
  const attempt = (decode: (frame: Buffer) => unknown, bytes: Buffer): void => {
    try {
      expect(decode(bytes)).toHaveProperty('type')
    } catch (thrown) {
      expect(thrown).toEqual(protocolError)
    }
  }
  fc.assert(
    fc.property(fc.uint8Array({ minLength: HEADER_BYTES, maxLength: 400 }), (bytes) => {
      attempt(decodeFromWorker, Buffer.from(bytes))
      attempt(decodeToWorker, Buffer.from(bytes))
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.oneof(anyFromWorker, anyToWorker), fc.nat(), fc.nat(255), (message, place, byte) => {
      const bytes = frameOf(message)
      bytes[4 + (place % (bytes.byteLength - 4))] = byte
      attempt(decodeFromWorker, bytes)
      attempt(decodeToWorker, bytes)
    }),
    { numRuns: 200 },
  )
})

test('lengths announced inside a frame beyond its bytes are refused and allocate nothing', () => {
  const before = process.memoryUsage()
  for (const head of ['c6ffffffff', 'dbffffffff', 'ddffffffff', 'dfffffffff', 'c9ffffffff01']) {
    expect(() => decodeToWorker(withPayload(FRAME.load, Buffer.from(head, 'hex')))).toThrow(protocolError)
  }
  for (const size of ['ffffffff', '00000001', '00'])
    expect(() => decodeToWorker(withPayload(FRAME.predict, Buffer.from(size, 'hex')))).toThrow(protocolError)
  const after = process.memoryUsage()
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(10e6)
  expect(after.heapUsed - before.heapUsed).toBeLessThan(50e6)
})

test('deep nesting is refused', () => {
  expect(() => decodeToWorker(withPayload(FRAME.load, Buffer.alloc(200_000, 0x91)))).toThrow(protocolError)
})

test('errors cross as data and come back as the same error', () => {
  for (const code of ERROR_CODES) {
    const error = new ServeError(code, 'why', { status: 418, detail: 'stack' })
    const message = decodeFromWorker(frameOf({ type: 'failure', id: 1, error: error.toWire() }))
    const back = ServeError.fromWire((message as { error: ReturnType<ServeError['toWire']> }).error)
    expect(back).toMatchObject({ code, message: 'why', status: 418, detail: 'stack' })
  }
})

test('an error code of a newer peer becomes INTERNAL', () => {
  expect(ServeError.fromWire({ code: 'NEW' as never, message: 'x' }).code).toBe('INTERNAL')
})

test('an item costs its bytes and a little more', () => {
  expect(itemCost(10)).toBe(74)
})

import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Packr } from 'msgpackr'
import { decodeFromWorker, decodeToWorker, encode } from '../../protocol/codec.ts'
import { ERROR_CODES, ServeError } from '../../common/errors.ts'
import { LENGTH_BYTES } from '../../protocol/frame.ts'
import { itemCost, ITEM_OVERHEAD_BYTES } from '../../protocol/messages.ts'
import { anyFromWorker, anyToWorker, fromWorker, toWorker } from './messages.ts'

const packr = new Packr({ useRecords: false })
const bodyOf = (frame: Buffer): Buffer => frame.subarray(LENGTH_BYTES)
const protocolError = expect.objectContaining({ name: 'ServeError', code: 'PROTOCOL' })

describe.each(Object.entries(fromWorker))('%s from the worker', (_type, message) => {
  test('comes back as it was sent, and no frontend message is taken for it', () => {
    fc.assert(
      fc.property(message, (sent) => {
        const frame = encode(sent as never)
        expect(frame.readUInt32BE(0)).toBe(frame.byteLength - LENGTH_BYTES)
        expect(decodeFromWorker(bodyOf(frame))).toEqual(sent)
        expect(() => decodeToWorker(bodyOf(frame))).toThrow(protocolError)
      }),
      { numRuns: 30 },
    )
  })
})

describe.each(Object.entries(toWorker))('%s to the worker', (_type, message) => {
  test('comes back as it was sent, and no worker message is taken for it', () => {
    fc.assert(
      fc.property(message, (sent) => {
        const body = bodyOf(encode(sent as never))
        expect(decodeToWorker(body)).toEqual(sent)
        expect(() => decodeFromWorker(body)).toThrow(protocolError)
      }),
      { numRuns: 30 },
    )
  })
})

test('binary values are views of the frame, not copies', () => {
  const body = bodyOf(encode({ type: 'response', id: 1, body: Buffer.from('abc') }))
  const message = decodeFromWorker(body)
  expect(message.type === 'response' && message.body.buffer).toBe(body.buffer)
})

test('a frame that was sent is not overwritten by the next ones', () => {
  const first = encode({ type: 'response', id: 1, body: Buffer.from('first') })
  const copy = Buffer.from(first)
  for (let i = 0; i < 10_000; i++) encode({ type: 'response', id: i, body: Buffer.alloc(50, 'x') })
  expect(first).toEqual(copy)
})

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

const spoilable = fc.oneof(
  ...[fromWorker.ready, fromWorker.response, fromWorker.failure, fromWorker.finished, fromWorker.metric],
  ...[toWorker.predict, toWorker.cancel, toWorker.credit, toWorker.ping],
)

test('a message with one wrong value anywhere is refused', () => {
  fc.assert(
    fc.property(spoilable, (message) => {
      for (const wrong of spoiled(message)) {
        const body = packr.pack(wrong)
        expect(() => decodeFromWorker(body)).toThrow(protocolError)
        expect(() => decodeToWorker(body)).toThrow(protocolError)
      }
    }),
    { numRuns: 15 },
  )
})

test('a message with a required field missing is refused', () => {
  fc.assert(
    fc.property(spoilable, (message) => {
      const fields = message as Record<string, unknown>
      const required = Object.keys(fields).filter(
        (key) =>
          !['ts_stream_next', 'contentType', 'status', 'reason', 'headers', 'requestId', 'after'].includes(
            key,
          ),
      )
      for (const key of required) {
        const body = packr.pack({ ...fields, [key]: undefined })
        expect(() => decodeFromWorker(body)).toThrow(protocolError)
        expect(() => decodeToWorker(body)).toThrow(protocolError)
      }
    }),
    { numRuns: 15 },
  )
})

test('a metric with more values than a worker sends at once is refused', () => {
  const metric = (count: number): Buffer => {
    const lists = { values: Array<number>(count).fill(1), requestIds: Array<string>(count).fill('') }
    return packr.pack({ type: 'metric', name: 'm', kind: 'histogram', unit: 'ms', dimensions: {}, ...lists })
  }
  expect(decodeFromWorker(metric(1024))).toMatchObject({ type: 'metric' })
  expect(() => decodeFromWorker(metric(1025))).toThrow(protocolError)
})

test('types that are no message are refused, also ones that every object has', () => {
  for (const type of ['', 'toString', 'constructor', '__proto__', 'reply', 7, null]) {
    expect(() => decodeFromWorker(packr.pack({ type }))).toThrow(protocolError)
    expect(() => decodeToWorker(packr.pack({ type }))).toThrow(protocolError)
  }
  for (const value of [null, 1, 'ping', [], ['ping'], true]) {
    expect(() => decodeToWorker(packr.pack(value))).toThrow(protocolError)
  }
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
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 400 }), (bytes) => {
      attempt(decodeFromWorker, Buffer.from(bytes))
      attempt(decodeToWorker, Buffer.from(bytes))
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.oneof(anyFromWorker, anyToWorker), fc.nat(), fc.nat(255), (message, place, byte) => {
      const bytes = Buffer.from(bodyOf(encode(message)))
      bytes[place % bytes.byteLength] = byte
      attempt(decodeFromWorker, bytes)
      attempt(decodeToWorker, bytes)
    }),
    { numRuns: 200 },
  )
})

test('lengths announced inside a frame beyond its bytes are refused and allocate nothing', () => {
  const before = process.memoryUsage()
  for (const head of ['c6ffffffff', 'dbffffffff', 'ddffffffff', 'dfffffffff', 'c9ffffffff01']) {
    expect(() => decodeToWorker(Buffer.from(head, 'hex'))).toThrow(protocolError)
  }
  const after = process.memoryUsage()
  expect(after.arrayBuffers - before.arrayBuffers).toBeLessThan(10e6)
  expect(after.heapUsed - before.heapUsed).toBeLessThan(50e6)
})

test('deep nesting is refused', () => {
  expect(() => decodeToWorker(Buffer.alloc(200_000, 0x91))).toThrow(protocolError)
})

test('errors cross as data and come back as the same error', () => {
  for (const code of ERROR_CODES) {
    const error = new ServeError(code, 'why', { status: 418, detail: 'stack' })
    const frame = encode({ type: 'failure', id: 1, error: error.toWire() })
    const message = decodeFromWorker(bodyOf(frame))
    const back = ServeError.fromWire((message as { error: ReturnType<ServeError['toWire']> }).error)
    expect(back).toMatchObject({ code, message: 'why', status: 418, detail: 'stack' })
  }
})

test('an error code of a newer peer becomes INTERNAL', () => {
  expect(ServeError.fromWire({ code: 'NEW' as never, message: 'x' }).code).toBe('INTERNAL')
})

test('an item costs its bytes and a little more', () => {
  expect(itemCost(10)).toBe(10 + ITEM_OVERHEAD_BYTES)
})

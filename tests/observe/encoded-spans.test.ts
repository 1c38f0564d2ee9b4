import { describe, expect, test } from '@jest/globals'
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import fc from 'fast-check'
import { EncodedSerializer } from '../../frontend/observe/traces/encoded-exporter.ts'
import { EncodedSpans } from '../../frontend/observe/traces/encoded-spans.ts'
import { ExportedSpan } from '../../frontend/observe/traces/exported-span.ts'
import { ProtobufWriter } from '../../frontend/observe/traces/protobuf-writer.ts'
import { SpanId, TraceId } from '../../frontend/observe/traces/span-ids.ts'
import type { EndedSpan } from '../../frontend/observe/traces/span-rows.ts'
import type { SpanAttribute } from '../../frontend/observe/traces/tracing.ts'

/** Short and long ones, of one, two, three and four bytes a character. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 400 }),
  fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 40 }),
  fc.constantFrom('', 'é', 'ü'.repeat(40), '\u0080', 'é'.repeat(130), '€'.repeat(48), '\u{1f642}'),
)
const integer = fc.oneof(fc.integer(), fc.maxSafeInteger(), fc.constantFrom(2 ** 62, -(2 ** 63), 2 ** 63))
const number = fc.oneof(integer, fc.double({ noNaN: true, noDefaultInfinity: true }))
const value = fc.oneof(text, number, fc.boolean(), fc.array(text, { maxLength: 20 }))
const time = fc.double({ min: 0, max: 4e12, noNaN: true }).map((ms) => Math.round(ms * 1e3) / 1e3)
const id = (digits: number): fc.Arbitrary<string> =>
  fc.string({
    unit: fc.constantFrom('0', '1', '7', '9', 'a', 'c', 'f', 'A', 'B', 'F'),
    minLength: digits,
    maxLength: digits,
  })

const spanId = id(16).map((digits) => SpanId.of(digits))

type Likeness = typeof likeness extends fc.Arbitrary<infer Value> ? Value : never
type Pair = [string, SpanAttribute]

const pairsOf = ({ attributes }: EndedSpan): Pair[] =>
  attributes.flatMap((name, at) =>
    at % 2 === 0 ? [[name as string, attributes[at + 1]!] satisfies Pair] : [],
  )

const span: fc.Arbitrary<EndedSpan> = fc.record({
  name: text,
  isServer: fc.boolean(),
  traceId: id(32).map((digits) => TraceId.of(digits)),
  spanId,
  traceState: fc.constantFrom(undefined, 'a=1', 'a=1,b=2'),
  parentId: fc.option(spanId, { nil: undefined }),
  isParentRemote: fc.boolean(),
  start: time,
  end: time,
  failed: fc.boolean(),
  attributes: fc
    // The SDK keeps them as an object, which sorts names that are numbers.
    .uniqueArray(
      fc.tuple(
        text.map((name) => `_${name}`),
        value,
      ),
      { maxLength: 40, selector: ([name]) => name },
    )
    .map((pairs) => pairs.flat()),
  events: fc.array(fc.tuple(text, time), { maxLength: 4 }).map((pairs) => pairs.flat()),
  droppedAttributes: fc.nat(),
  droppedEvents: fc.nat(),
})

/** What changes of an attribute: the last character of its value, or what it says. */
const CHANGES = ['a', 'b', 'b', 'é', 'ab', 'name', 'value'] as const

/**
 * How a span is like one before, as spans of a server are: of the same name, it has all that the other one
 * had, or all but some attributes. A bare one has none, and stands between two that are like each other.
 */
const likeness = fc.record({
  span,
  isBare: fc.boolean(),
  /** What it has of its own besides ids and times, by far most often nothing. */
  own: fc.subarray(
    [
      'isServer',
      'isParentRemote',
      'failed',
      'traceState',
      'parentId',
      'droppedAttributes',
      'droppedEvents',
    ] as const,
    { maxLength: 1 },
  ),
  ownEvents: fc.constantFrom('names', 'times', 'times'),
  kept: fc.oneof(fc.nat({ max: 40 }), fc.constant(40)),
  changes: fc.array(fc.tuple(fc.nat({ max: 5 }), fc.constantFrom(...CHANGES)), { maxLength: 3 }),
})

function changed([name, value]: Pair, change: (typeof CHANGES)[number]): Pair {
  if (change === 'name') return [`${name}_`, value]
  if (typeof value !== 'string' || change === 'value') return [name, 7]
  return [name, `${value.slice(0, -1)}${change}`]
}

function next(before: EndedSpan, { span, own, ownEvents, kept, changes }: Likeness): EndedSpan {
  const pairs = pairsOf(before).slice(0, kept)
  for (const [at, change] of changes) {
    if (at >= pairs.length) continue
    const pair = changed(pairs[at]!, change)
    // A span has an attribute once.
    if (!pairs.some(([name], other) => other !== at && name === pair[0])) pairs[at] = pair
  }
  const names = new Set(pairs.map(([name]) => name))
  const others = kept < 40 ? pairsOf(span).filter(([name]) => !names.has(name)) : []
  const { traceId, spanId, start, end } = span
  const parentId = before.parentId === undefined ? undefined : (span.parentId ?? before.parentId)
  const events =
    ownEvents === 'names'
      ? span.events
      : before.events.map((each) => (typeof each === 'number' ? start : each))
  const same = {
    ...before,
    traceId,
    spanId,
    parentId,
    start,
    end,
    events,
    attributes: [...pairs, ...others].flat(),
  }
  return { ...same, ...Object.fromEntries(own.map((name) => [name, span[name]])) }
}

const spans = fc.tuple(span, fc.array(likeness, { maxLength: 8 })).map(([first, likenesses]) => {
  const all = [first]
  let before = first
  for (const each of likenesses) {
    if (each.isBare) all.push({ ...each.span, name: before.name, attributes: [] })
    else all.push((before = next(before, each)))
  }
  return all
})

const scope = { name: 'torchserve-ts', version: '1' }

describe('encoded spans', () => {
  test('are the bytes that the SDK makes of the same spans, several batches in one request', () => {
    fc.assert(
      fc.property(
        fc.array(spans, { minLength: 1, maxLength: 3 }),
        fc.dictionary(
          text.map((name) => `_${name}`),
          text,
        ),
        (batches, attributes) => {
          const origin = { resource: resourceFromAttributes(attributes), scope }
          const spans = new EncodedSpans()
          const encoded = batches.map((batch) => {
            for (const each of batch) spans.add(each)
            return spans.take()
          })
          const bytes = new EncodedSerializer(origin).serializeRequest(Buffer.concat(encoded))
          const exported = batches.flat().map((each) => new ExportedSpan(each, origin))
          const theirs = ProtobufTraceSerializer.serializeRequest(exported)!
          expect(Buffer.from(bytes).toString('hex')).toBe(Buffer.from(theirs).toString('hex'))
        },
      ),
      { numRuns: 300 },
    )
  })

  test('are the same bytes as alone, whatever the texts of those before', () => {
    const [one] = fc.sample(span, { seed: 1, numRuns: 1 })
    const texts = ['first', 'other', 'other', 'first', 'third', 'other']
    const all = texts.map((text): EndedSpan => ({ ...one!, attributes: ['model', 'echo', 'id', text] }))
    const together = new EncodedSpans()
    for (const each of all) together.add(each)
    const alone = all.map((each) => {
      const spans = new EncodedSpans()
      spans.add(each)
      return spans.take()
    })
    expect(Buffer.from(together.take()).toString('hex')).toBe(Buffer.concat(alone).toString('hex'))
  })

  test.each([true, false])(
    'of a batch are whole whatever the one before had, of a request: %s',
    (isServer) => {
      const attributes = ['model', 'echo', 'text', 'x'.repeat(20_000)]
      const [one] = fc.sample(span, { seed: 1, numRuns: 1 })
      const spans = new EncodedSpans()
      const batches = [1, 2, 3].map(() => {
        for (let count = 0; count < 20; count += 1) spans.add({ ...one!, isServer, attributes })
        return Buffer.from(spans.take()).toString('hex')
      })
      expect(new Set(batches).size).toBe(1)
    },
  )
})

const bytesOf = (span: EndedSpan): string => {
  const spans = new EncodedSpans()
  spans.add(span)
  return Buffer.from(spans.take()).toString('hex')
}

const theirsOf = (span: EndedSpan): string => {
  const origin = { resource: resourceFromAttributes({}), scope }
  return Buffer.from(ProtobufTraceSerializer.serializeRequest([new ExportedSpan(span, origin)])!).toString(
    'hex',
  )
}

describe('an encoded span', () => {
  const [one] = fc.sample(span, { seed: 2, numRuns: 1 })
  const plain = { ...one!, attributes: [], events: [] }

  test('whose times are before 1970, as of a clock that was never set, has none', () => {
    const early = { ...plain, start: -86_400_000.5, end: -0.25, events: ['first response', -1] }
    expect(bytesOf(early)).toBe(bytesOf({ ...early, start: 0, end: 0, events: ['first response', 0] }))
  })

  test.each([
    0,
    -1,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    2 ** 32 + 1,
    -(2 ** 32),
    2 ** 53,
    2 ** 62,
    -(2 ** 63),
    2 ** 63,
    -(2 ** 63) - 2 ** 11,
  ])('has a number as the SDK has it: %d', (value) => {
    const span = { ...plain, attributes: ['number', value] }
    // Theirs has what stands around it.
    expect(theirsOf(span)).toContain(bytesOf(span))
  })
})

/** With texts, and nothing that grows its buffer. */
function fill(writer: ProtobufWriter, bytes: number): void {
  while (writer.position < bytes - 200) writer.text(1, 'x'.repeat(100))
  while (writer.position < bytes) writer.number(1, 0)
}

test('a buffer that has grown much is not kept', () => {
  const writer = new ProtobufWriter()
  const sizes = [1_000_000, 50_000, 100, 1_000_000, 100, 50_000].map((length) => {
    for (let count = 0; count < 6; count += 1) writer.text(1, 'x'.repeat(length))
    return writer.take().buffer.byteLength
  })
  expect([sizes[1], sizes[5]]).toEqual([2 ** 20, 2 ** 20])
})

test('fields of numbers and ids at the end of the buffer are written whole, wherever that ends', () => {
  const fields: ((writer: ProtobufWriter) => void)[] = [
    (writer) => writer.traceId(1, TraceId.of('a'.repeat(32))),
    (writer) => writer.fixed64(1, 1, 2),
    (writer) => writer.int64(1, -1),
    (writer) => writer.double(1, 0.5),
  ]
  for (const write of fields) {
    const alone = new ProtobufWriter()
    write(alone)
    const wanted = Buffer.from(alone.take()).toString('hex')
    for (let left = 0; left < 40; left += 1) {
      const writer = new ProtobufWriter()
      fill(writer, 64_000)
      while (writer.position < 65_536 - left - 2) writer.number(1, 0)
      const from = writer.position
      write(writer)
      expect([left, Buffer.from(writer.take().subarray(from)).toString('hex')]).toEqual([left, wanted])
    }
  }
})

/** Writes so many bytes, and takes them. */
function takeMany(writer: ProtobufWriter, bytes: number): Uint8Array {
  for (let rest = bytes; rest > 0; rest -= 1_000) writer.text(1, 'x'.repeat(1_000))
  return writer.take()
}

test('much that was written is shared and not copied, and its buffer is used again when it comes back', () => {
  const writer = new ProtobufWriter()
  const [one, two] = [takeMany(writer, 500_000), takeMany(writer, 500_000)]
  expect(one.buffer).toBeInstanceOf(SharedArrayBuffer)
  expect(two.buffer).not.toBe(one.buffer)
  writer.giveBack(one)
  // It is the one after the next: the writer has another one already.
  expect(takeMany(writer, 500_000).buffer).not.toBe(one.buffer)
  expect(takeMany(writer, 500_000).buffer).toBe(one.buffer)
})

test('of buffers that come back the writer keeps two, none that has grown much, and no copy', () => {
  const writer = new ProtobufWriter()
  const copy = takeMany(writer, 1_000)
  expect(copy.buffer).toBeInstanceOf(ArrayBuffer)
  const grown = takeMany(writer, 3_000_000)
  const taken = [1, 2, 3].map(() => takeMany(writer, 500_000))
  for (const each of [copy, grown, ...taken]) writer.giveBack(each)
  takeMany(writer, 500_000)
  const next = [1, 2, 3].map(() => takeMany(writer, 500_000).buffer)
  expect(next.map((buffer) => taken.findIndex((each) => each.buffer === buffer))).toEqual([1, 0, -1])
})

test('a text at the end of the buffer is written whole, wherever that ends', () => {
  for (let left = 0; left < 700; left += 1) {
    const writer = new ProtobufWriter()
    fill(writer, 65_536 - 24 - left)
    const from = writer.position
    writer.text(1, '€'.repeat(200))
    expect([left, writer.take().length - from]).toEqual([left, 1 + 2 + 600])
  }
})

import { describe, expect, test } from '@jest/globals'
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import fc from 'fast-check'
import { EncodedSerializer } from '../../frontend/observe/traces/encoded-exporter.ts'
import { EncodedSpans } from '../../frontend/observe/traces/encoded-spans.ts'
import { ExportedSpan } from '../../frontend/observe/traces/exported-span.ts'
import { ProtobufWriter } from '../../frontend/observe/traces/protobuf-writer.ts'
import type { EndedSpan } from '../../frontend/observe/traces/span-rows.ts'
import type { SpanAttribute } from '../../frontend/observe/traces/tracing.ts'

/** Short and long ones, of one, two, three and four bytes a character. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 400 }),
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

type Likeness = typeof likeness extends fc.Arbitrary<infer Value> ? Value : never
type Pair = [string, SpanAttribute]

const pairsOf = ({ attributes }: EndedSpan): Pair[] =>
  attributes.flatMap((name, at) =>
    at % 2 === 0 ? [[name as string, attributes[at + 1]!] satisfies Pair] : [],
  )

const span: fc.Arbitrary<EndedSpan> = fc.record({
  name: text,
  isServer: fc.boolean(),
  traceId: id(32),
  spanId: id(16),
  traceState: fc.constantFrom(undefined, 'a=1', 'a=1,b=2'),
  parentId: fc.option(id(16), { nil: undefined }),
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

/**
 * How a span is like one before, as spans of a server are: it may have its trace and its attributes. A bare
 * one has none, and stands between two that are like each other.
 */
const likeness = fc.record({
  span,
  isBare: fc.boolean(),
  hasTrace: fc.boolean(),
  kept: fc.nat({ max: 40 }),
  changed: fc.nat({ max: 40 }),
})

function next(before: EndedSpan, { span, hasTrace, kept, changed }: Likeness): EndedSpan {
  const pairs = pairsOf(before).slice(0, kept)
  if (changed < pairs.length) pairs[changed] = [pairs[changed]![0], 'changed']
  const names = new Set(pairs.map(([name]) => name))
  const others = pairsOf(span).filter(([name]) => !names.has(name))
  const traceId = hasTrace ? before.traceId : span.traceId
  return { ...span, traceId, attributes: [...pairs, ...others].flat() }
}

const spans = fc.tuple(span, fc.array(likeness, { maxLength: 5 })).map(([first, likenesses]) => {
  const all = [first]
  let before = first
  for (const each of likenesses) {
    if (each.isBare) all.push({ ...each.span, isServer: before.isServer, attributes: [] })
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

test('a text at the end of the buffer is written whole, wherever that ends', () => {
  for (let left = 0; left < 700; left += 1) {
    const writer = new ProtobufWriter()
    fill(writer, 65_536 - 24 - left)
    const from = writer.position
    writer.text(1, '€'.repeat(200))
    expect([left, writer.take().length - from]).toEqual([left, 1 + 2 + 600])
  }
})

import { describe, expect, test } from '@jest/globals'
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer'
import { resourceFromAttributes } from '@opentelemetry/resources'
import fc from 'fast-check'
import { EncodedSerializer } from '../../frontend/observe/traces/encoded-exporter.ts'
import { EncodedSpans } from '../../frontend/observe/traces/encoded-spans.ts'
import { ExportedSpan } from '../../frontend/observe/traces/exported-span.ts'
import { ProtobufWriter } from '../../frontend/observe/traces/protobuf-writer.ts'
import type { EndedSpan } from '../../frontend/observe/traces/span-rows.ts'

/** Short and long ones, of one, two, three and four bytes a character. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 400 }),
  fc.constantFrom('', 'é'.repeat(130), '€'.repeat(48), '\u{1f642}'),
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

const scope = { name: 'torchserve-ts', version: '1' }

describe('encoded spans', () => {
  test('are the bytes that the SDK makes of the same spans, several batches in one request', () => {
    fc.assert(
      fc.property(
        fc.array(fc.array(span, { maxLength: 3 }), { minLength: 1, maxLength: 3 }),
        fc.dictionary(
          text.map((name) => `_${name}`),
          text,
        ),
        (batches, attributes) => {
          fc.pre(batches.flat().length > 0)
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
})

test('a text at the end of the buffer is written whole, wherever that ends', () => {
  for (let left = 0; left < 700; left += 1) {
    const writer = new ProtobufWriter()
    writer.raw(new Uint8Array(65_536 - 24 - left))
    const from = writer.position
    writer.text(1, '€'.repeat(200))
    expect([left, writer.take().length - from]).toEqual([left, 1 + 2 + 600])
  }
})

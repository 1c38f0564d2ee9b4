import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { loadSync, type MethodDefinition } from '@grpc/proto-loader'
import fc from 'fast-check'
import { ByteCollector } from '../../../common/byte-flow.ts'
import { encodePrediction } from '../../../frontend/dialects/torchserve/grpc-reply.ts'

const PROTO_DIR = join(import.meta.dirname, '..', '..', '..', 'proto')
const SERVICE = 'org.pytorch.serve.grpc.inference.InferenceAPIsService'

const methods = loadSync('inference.proto', { keepCase: true, includeDirs: [PROTO_DIR] })[
  SERVICE
] as unknown as Record<'Ping' | 'Predictions', MethodDefinition<object, object>>

describe('encodePrediction', () => {
  const { responseSerialize } = methods.Predictions

  test('writes what protobuf.js writes', () => {
    const sizes = fc.oneof(fc.nat(300), fc.constantFrom(127, 128, 16_383, 16_384, 2_097_151, 2_097_152))
    fc.assert(
      fc.property(sizes, fc.nat(255), (size, byte) => {
        const prediction = Buffer.alloc(size, byte)
        const expected = size === 0 ? Buffer.alloc(0) : responseSerialize({ prediction })
        return encodePrediction(prediction).equals(expected)
      }),
    )
  })

  test('serves the health response too', () => {
    const health = '{"status": "Größe"}'
    expect(methods.Ping.responseDeserialize(encodePrediction(Buffer.from(health)))).toEqual({ health })
  })
})

describe('ByteCollector', () => {
  test('joins the items up to its limit, and refuses the first that does not fit', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3000 })), fc.nat(20_000), (items, limit) => {
        const collector = new ByteCollector(limit)
        const taken = items.filter((item) => collector.add(item))
        const expected = Buffer.concat(taken)
        const fits = taken.length === items.length
        return (
          collector.bytes().equals(expected) &&
          expected.byteLength <= limit &&
          fits === Buffer.concat(items).byteLength <= limit
        )
      }),
    )
  })
})

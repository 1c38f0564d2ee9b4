import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { checkJsonBounds } from '../../common/json-bounds.ts'
import { parseYaml } from '../../model-archiver/yaml.ts'
import { joinElements } from '../../common/tensors/bytes.ts'
import type { Datatype } from '../../common/tensors/datatypes.ts'
import { rawContents, typedContents } from '../../frontend/dialects/open-inference/grpc-contents.ts'
import { messageFault } from '../../frontend/edge/grpc/message-check.ts'
import { loadService } from '../../frontend/edge/grpc/definitions.ts'
import { grpcMessage } from '../support/raw-http2.ts'

const { definition, requests } = loadService('infer_messages.proto', 'torchserve_ts.Messages')
const shape = requests.get('ModelInfer')!
const { requestSerialize } = definition['ModelInfer']!

describe('the elements of a gRPC message', () => {
  const prefixed = (message: Buffer): Buffer => grpcMessage(message)
  const parameter = fc.record({ string_param: fc.string({ maxLength: 5 }) })
  const parameters = fc.dictionary(fc.string({ maxLength: 5 }), parameter, {
    maxKeys: 5,
    noNullPrototype: true,
  })
  const input = fc.record({
    name: fc.string({ maxLength: 20 }),
    shape: fc.array(fc.nat(), { maxLength: 5 }),
    parameters,
    contents: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  })
  const request = fc.record({
    model_name: fc.string({ minLength: 1, maxLength: 5 }),
    parameters,
    inputs: fc.array(input, { maxLength: 8 }),
    raw_input_contents: fc.array(fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))),
  })

  /** Five for each field, one for each byte of a shape. */
  function elementsOf(message: object): number {
    let most = 1 << 20
    for (let least = 0; least < most;) {
      const middle = (least + most) >> 1
      if (messageFault([prefixed(requestSerialize(message))], shape, middle) === 'elements')
        least = middle + 1
      else most = middle
    }
    return most
  }

  test('are counted whatever the pieces that the message lies in', () => {
    fc.assert(
      fc.property(request, fc.integer({ min: 1, max: 50 }), fc.nat(200), (message, size, limit) => {
        const whole = prefixed(requestSerialize(message))
        const parts: Buffer[] = []
        for (let at = 0; at < whole.byteLength; at += size) parts.push(whole.subarray(at, at + size))
        expect(messageFault(parts, shape, limit)).toEqual(messageFault([whole], shape, limit))
      }),
    )
  })

  test('are at least five for each field that the decoder sets', () => {
    fc.assert(
      fc.property(request, (message) => {
        const { inputs, raw_input_contents: raw } = message
        const bytes = requestSerialize(message).byteLength
        const fields = 1 + inputs.length + raw.length + Object.keys(message.parameters).length
        const found = elementsOf(message)
        expect(found === 0 || found >= Math.min(5 * fields, bytes)).toBe(true)
      }),
    )
  })

  test('of any bytes at all are counted without an error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
        expect(() => messageFault([prefixed(Buffer.from(bytes))], shape, 10)).not.toThrow()
      }),
    )
  })
})

describe('the contents of a gRPC answer', () => {
  const { definition: open } = loadService('inference/mlserver.proto', 'inference.GRPCInferenceService', {
    decode: { longs: String, arrays: true },
  })
  const { responseDeserialize: decode, responseSerialize: encode } = open['ModelInfer']!
  const write = definition['ModelInfer']!.responseSerialize
  const decoded = (message: Buffer): unknown => decode(message)

  /** As protobuf writes the same elements, given one by one. */
  function expectEqual(datatype: Datatype, data: Uint8Array, contents: object): void {
    const head = { name: 'x', datatype, shape: ['1'] }
    const bytes = typedContents({ name: 'x', datatype, shape: [1], data })
    const written = write({ outputs: [{ ...head, contents: bytes }] })
    expect(decoded(written)).toEqual(decoded(encode({ outputs: [{ ...head, contents }] })))
  }

  test('are written exactly: whole numbers', () => {
    const raw = (array: ArrayBufferView): Uint8Array => new Uint8Array(array.buffer)
    const wide = (min: bigint, max: bigint) => fc.array(fc.bigInt({ min, max }))
    fc.assert(
      fc.property(wide(-(2n ** 63n), 2n ** 63n - 1n), wide(0n, 2n ** 64n - 1n), (signed, unsigned) => {
        expectEqual('INT64', raw(new BigInt64Array(signed)), { int64_contents: signed.map(String) })
        expectEqual('UINT64', raw(new BigUint64Array(unsigned)), { uint64_contents: unsigned.map(String) })
      }),
    )
    fc.assert(
      fc.property(fc.array(fc.integer()), (list) => {
        const [int8, int32, uint32] = [new Int8Array(list), new Int32Array(list), new Uint32Array(list)]
        expectEqual('INT8', raw(int8), { int_contents: [...int8] })
        expectEqual('INT32', raw(int32), { int_contents: [...int32] })
        expectEqual('UINT32', raw(uint32), { uint_contents: [...uint32] })
        expectEqual('BOOL', raw(int8), { bool_contents: [...int8].map((each) => each !== 0) })
      }),
    )
  })

  test('are written exactly: floats, bytes', () => {
    fc.assert(
      fc.property(fc.array(fc.float()), fc.array(fc.uint8Array({ maxLength: 300 })), (real, texts) => {
        const floats = new Uint8Array(new Float32Array(real).buffer)
        expectEqual('FP32', floats, { fp32_contents: real })
        expectEqual('FP64', new Uint8Array(new Float64Array(real).buffer), { fp64_contents: real })
        expectEqual('BYTES', joinElements(texts), { bytes_contents: texts })
      }),
    )
  })

  test('datatypes without contents have none', () => {
    expect(
      typedContents({ name: 'x', datatype: 'FP16', shape: [1], data: new Uint8Array(2) }),
    ).toBeUndefined()
  })
})

describe('the contents of a gRPC tensor', () => {
  const { definition: open } = loadService('inference/mlserver.proto', 'inference.GRPCInferenceService')
  const encodeRequest = open['ModelInfer']!.requestSerialize as (message: object) => Buffer
  const decode = definition['ModelInfer']!.requestDeserialize as (bytes: Buffer) => {
    inputs: { contents: Buffer }[]
  }
  const contentsOf = (contents: object): Buffer =>
    decode(encodeRequest({ inputs: [{ name: 'x', contents }] })).inputs[0]!.contents

  const raw = (datatype: string, contents: object): Buffer =>
    Buffer.from(rawContents({ name: 'x', datatype, contents: contentsOf(contents) }, 1_000_000)!.data)

  test('are read exactly: 64-bit integers', () => {
    fc.assert(
      fc.property(
        fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { minLength: 1 }),
        (list) => {
          const expected = Buffer.from(new BigInt64Array(list).buffer)
          expect(raw('INT64', { int64_contents: list.map(String) })).toEqual(expected)
        },
      ),
    )
    fc.assert(
      fc.property(fc.array(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), { minLength: 1 }), (list) => {
        const expected = Buffer.from(new BigUint64Array(list).buffer)
        expect(raw('UINT64', { uint64_contents: list.map(String) })).toEqual(expected)
      }),
    )
  })

  test('are read exactly: smaller integers, floats, bytes', () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer(), { minLength: 1 }),
        fc.array(fc.float({ noNaN: true }), { minLength: 1 }),
        (whole, real) => {
          expect(raw('INT32', { int_contents: whole })).toEqual(Buffer.from(new Int32Array(whole).buffer))
          const unsigned = new Uint32Array(whole)
          expect(raw('UINT32', { uint_contents: [...unsigned] })).toEqual(Buffer.from(unsigned.buffer))
          expect(raw('FP32', { fp32_contents: real })).toEqual(Buffer.from(new Float32Array(real).buffer))
          expect(raw('FP64', { fp64_contents: real })).toEqual(Buffer.from(new Float64Array(real).buffer))
        },
      ),
    )
    const texts = raw('BYTES', { bytes_contents: [Buffer.from('a'), Buffer.alloc(0)] })
    expect(texts.toString('hex')).toBe('010000006100000000')
    expect(raw('BOOL', { bool_contents: [true, false] }).toString('hex')).toBe('0100')
  })

  test('of any bytes at all are read or refused', () => {
    const datatypes = ['BOOL', 'INT8', 'INT64', 'UINT32', 'FP32', 'FP64', 'BYTES']
    fc.assert(
      fc.property(fc.uint8Array(), fc.constantFrom(...datatypes), (bytes, datatype) => {
        try {
          rawContents({ name: 'x', datatype, contents: Buffer.from(bytes) }, 1_000)
        } catch (thrown) {
          expect((thrown as { code: string }).code).toMatch(/^(INVALID_TENSOR|PAYLOAD_TOO_LARGE)$/)
        }
      }),
    )
  })

  test('an integer outside of the datatype is refused', () => {
    expect(() => raw('INT8', { int_contents: [128] })).toThrow('from -128 to 127')
    expect(() => raw('UINT8', { uint_contents: [256] })).toThrow('from 0 to 255')
  })
})

describe('the elements of JSON', () => {
  const json = fc.jsonValue({ depthSize: 'large' })

  test('containers and strings count one, keys five, every further entry a quarter, but not those of tensors', () => {
    const text = Buffer.from(`{"a":[1,2,3,"x",{"b":null}]}${' '.repeat(200)}`)
    expect(() => checkJsonBounds(text, 15)).not.toThrow()
    expect(() => checkJsonBounds(text, 14)).toThrow('must have at most 14 elements')
    expect(() => checkJsonBounds(text, 14, { tensors: true })).not.toThrow()
    expect(() => checkJsonBounds(text, 13, { tensors: true })).toThrow('must have at most 13 elements')
  })

  test('what strings contain counts nothing', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const bytes = Buffer.from(`${JSON.stringify(`[{":,${text}\\"`)}${' '.repeat(100)}`)
        expect(() => checkJsonBounds(bytes, 1)).not.toThrow()
      }),
    )
  })

  test('every value has as many as its parts', () => {
    const count = (value: unknown): number => {
      if (typeof value === 'string') return 1
      if (typeof value !== 'object' || value === null) return 0
      const keys = Array.isArray(value) ? 0 : 5 * Object.keys(value).length
      return Object.values(value).reduce<number>((sum, child) => sum + count(child), 1 + keys)
    }
    fc.assert(
      fc.property(json, (value) => {
        const elements = count(value)
        const text = Buffer.from(`${JSON.stringify(value)}${' '.repeat(elements + 1)}`)
        expect(() => checkJsonBounds(text, elements, { tensors: true })).not.toThrow()
        if (elements > 0)
          expect(() => checkJsonBounds(text, elements - 1, { tensors: true })).toThrow('elements')
      }),
    )
  })
})

describe('the elements of YAML in an archive', () => {
  test.each([
    ['[', /64 levels/],
    ['{', /64 levels/],
    ['- ', /64 levels/],
    ['? ', /64 levels/],
    ['}', /10000 tokens/],
    ['- a\n', /10000 tokens/],
    ['! ', /10000 tokens/],
  ])('400,000 times %j is refused before it is parsed', async (text, why) => {
    await expect(parseYaml(text.repeat(400_000))).rejects.toThrow(why)
  })

  test('blocks by indentation count', async () => {
    const lines = Array.from({ length: 200 }, (_, i) => `${' '.repeat(i)}a:\n`)
    await expect(parseYaml(lines.join(''))).rejects.toThrow('64 levels')
  })

  test('a usual file passes', async () => {
    const text = 'a: 1\nlist:\n- b\n- c: [1, {x: 2}]\n  d: |\n    text\n      [[[\n# end\n'
    expect(await parseYaml(text)).toEqual({ a: 1, list: ['b', { c: [1, { x: 2 }], d: 'text\n  [[[\n' }] })
  })
})

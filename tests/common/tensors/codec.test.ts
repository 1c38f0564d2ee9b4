import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { joinElements, splitElements } from '../../../common/tensors/bytes.ts'
import {
  type Datatype,
  DATATYPE_NAMES,
  fromBrain,
  fromHalf,
  NUMERIC,
  toBrain,
  toHalf,
} from '../../../common/tensors/datatypes.ts'
import {
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  parseObject,
  requestFrom,
  type InferRequest,
} from '../../../common/tensors/message.ts'
import type { RawTensor } from '../../../common/tensors/tensor.ts'
import { elementsJson, numbersJson, tensorJson } from '../../../common/tensors/to-json.ts'
import { arrayOf, dataOf, rawOf } from '../../../common/tensors/typed.ts'

const shapes = fc.array(fc.integer({ min: 0, max: 4 }), { maxLength: 3 })
const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1)

function rawData(datatype: Datatype, elements: number): fc.Arbitrary<Uint8Array> {
  const spec = NUMERIC.get(datatype)
  if (spec === undefined) {
    const element = fc.uint8Array({ maxLength: 9 })
    return fc.array(element, { minLength: elements, maxLength: elements }).map(joinElements)
  }
  const length = elements * spec.array.BYTES_PER_ELEMENT
  const bits = fc.uint8Array({ minLength: length, maxLength: length })
  return spec.kind === 'boolean' ? bits.map((bytes) => bytes.map((byte) => byte & 1)) : bits
}

const tensors: fc.Arbitrary<RawTensor> = fc
  .tuple(fc.constantFrom(...DATATYPE_NAMES), shapes, fc.string({ maxLength: 5 }))
  .chain(([datatype, shape, name]) =>
    rawData(datatype, count(shape)).map((data) => ({ name, datatype, shape, data })),
  )

const parseRequest = (json: Buffer, raw?: Buffer) => requestFrom(parseObject(json), raw)

const bytesOf = (tensor: RawTensor) => ({ ...tensor, data: Buffer.from(tensor.data).toString('hex') })

test('messages keep every bit of every datatype', () => {
  fc.assert(
    fc.property(
      fc.array(tensors, { maxLength: 4 }),
      fc.option(fc.string(), { nil: undefined }),
      (inputs, id) => {
        const request = decodeRequest(encodeRequest({ id, inputs, parameters: { a: 1 } }))
        expect(request.inputs.map(bytesOf)).toEqual(inputs.map(bytesOf))
        expect([request.id, request.parameters]).toEqual([id, { a: 1 }])
        const response = decodeResponse(encodeResponse({ id, modelName: 'm', outputs: inputs }))
        expect(response.outputs.map(bytesOf)).toEqual(inputs.map(bytesOf))
      },
    ),
  )
})

test('what a handler gets becomes the same tensor again, wherever it lies in memory', () => {
  fc.assert(
    fc.property(tensors, fc.integer({ min: 0, max: 7 }), (tensor, offset) => {
      const moved = Buffer.concat([Buffer.alloc(offset), tensor.data]).subarray(offset)
      const { name, datatype, shape } = tensor
      const again = rawOf({ name, datatype, shape: [...shape] }, dataOf({ ...tensor, data: moved }))
      expect(bytesOf(again)).toEqual(bytesOf(tensor))
    }),
  )
})

test('JSON keeps what it can say: finite numbers, all digits of 64 bits, texts, and bytes as base64', () => {
  fc.assert(
    fc.property(tensors, (tensor) => {
      const json = tensorJson(tensor)
      const back = parseRequest(Buffer.from(`{"inputs":[${json}]}`)).inputs[0]!
      const said = JSON.parse(json) as { parameters?: { content_type: string }; data: unknown[] }
      if (said.parameters?.content_type === 'base64') {
        expect(said.data.map((text) => Buffer.from(text as string, 'base64').toString('hex'))).toEqual(
          splitElements(tensor).map((element) => element.toString('hex')),
        )
      } else if (said.data.includes(null)) {
        expect(['half', 'brain', 'float']).toContain(NUMERIC.get(tensor.datatype)!.kind)
      } else {
        expect(tensorJson(back)).toBe(json)
        expect(back.data.byteLength).toBe(tensor.data.byteLength)
      }
    }),
  )
})

test('halves and brain floats: every value of 16 bits survives, others go to the nearest', () => {
  const all = Array.from({ length: 0x10000 }, (_, bits) => bits)
  expect(all.filter((bits) => !Number.isNaN(fromHalf(bits)) && toHalf(fromHalf(bits)) !== bits)).toEqual([])
  expect(all.filter((bits) => !Number.isNaN(fromBrain(bits)) && toBrain(fromBrain(bits)) !== bits)).toEqual(
    [],
  )
  expect([toHalf(NaN), toBrain(NaN)].map((bits, i) => [fromHalf, fromBrain][i]!(bits))).toEqual([NaN, NaN])
  expect([65519, 65520, 2 ** -25, 1.5 * 2 ** -24, 1 + 2 ** -11].map(toHalf).map(fromHalf)).toEqual([
    65504,
    Infinity,
    0,
    2 ** -23,
    1,
  ])
  fc.assert(
    fc.property(fc.double({ min: -65000, max: 65000, noNaN: true }), (value) => {
      const near = fromHalf(toHalf(value))
      const step = Math.max(Math.abs(near), 2 ** -14) * 2 ** -10
      expect(Math.abs(near - value)).toBeLessThanOrEqual(step / 2)
    }),
  )
})

describe('a request is refused as INVALID_TENSOR', () => {
  const tensor = (over: object) => ({
    inputs: [{ name: 'x', shape: [2], datatype: 'INT32', data: [1, 2], ...over }],
  })
  test.each<[string, object]>([
    ['no inputs', {}],
    ['an unknown datatype', tensor({ datatype: 'INT7' })],
    ['no shape', tensor({ shape: undefined })],
    ['a negative dimension', tensor({ shape: [-2] })],
    ['two dimensions of any size', tensor({ shape: [-1, -1] })],
    ['a dimension of any size that the elements do not fill', tensor({ shape: [-1, 3] })],
    ['a dimension of any size beside none', tensor({ shape: [-1, 0], data: [] })],
    ['a number of other elements', tensor({ shape: 3 })],
    ['a shape that is a text', tensor({ shape: '2' })],
    ['a shape of astronomic size', tensor({ shape: [1e9, 1e9, 0.5e9] })],
    ['too few elements', tensor({ data: [1] })],
    ['too many elements', tensor({ data: [[1, 2], [3]] })],
    ['an element out of range', tensor({ data: [1, 2 ** 31] })],
    ['a fraction', tensor({ data: [1, 0.5] })],
    ['a text for a number', tensor({ data: ['a', 'b'] })],
    ['a number for a text', tensor({ datatype: 'BYTES' })],
    ['data that is no list', tensor({ data: 1 })],
    ['a binary size that nothing follows', tensor({ data: undefined, parameters: { binary_data_size: 8 } })],
    ['a binary size that is none', tensor({ data: undefined, parameters: { binary_data_size: '8' } })],
    ['parameters that are no object', tensor({ parameters: [] })],
    ['an id that is no text', { ...tensor({}), id: 1 }],
    ['outputs without names', { ...tensor({}), outputs: [{}] }],
  ])('%s', (_what, value) => {
    expect(() => parseRequest(Buffer.from(JSON.stringify(value)))).toThrow(
      expect.objectContaining({ code: 'INVALID_TENSOR' }),
    )
  })

  test('raw bytes that belong to no tensor, and raw tensors of the wrong size', () => {
    const json = (size: number) =>
      Buffer.from(
        JSON.stringify({
          inputs: [{ name: 'x', shape: [2], datatype: 'INT32', parameters: { binary_data_size: size } }],
        }),
      )
    const refusal = expect.objectContaining({ code: 'INVALID_TENSOR' })
    expect(() => parseRequest(json(8), Buffer.alloc(9))).toThrow(refusal)
    expect(() => parseRequest(json(4), Buffer.alloc(4))).toThrow(refusal)
    expect(arrayOf(parseRequest(json(8), Buffer.alloc(8, 1)).inputs[0]!)).toEqual(
      Int32Array.of(0x01010101, 0x01010101),
    )
  })

  test('nesting without end', () => {
    const deep = `{"inputs":[{"name":"x","shape":[1],"datatype":"INT8","data":${'['.repeat(4000)}1${']'.repeat(4000)}}]}`
    expect(() => parseRequest(Buffer.from(deep))).toThrow(expect.objectContaining({ code: 'INVALID_TENSOR' }))
  })
})

describe('a shape', () => {
  const read = (shape: unknown, data: unknown[], datatype = 'INT32') =>
    parseRequest(Buffer.from(JSON.stringify({ inputs: [{ name: 'x', shape, datatype, data }] }))).inputs[0]!

  test.each<[string, unknown, number, number[]]>([
    ['of a number is a list of it', 6, 6, [6]],
    ['of -1 is the number of elements', [-1], 6, [6]],
    ['of the number -1 too', -1, 6, [6]],
    ['with one -1 has what the others leave', [2, -1], 6, [2, 3]],
    ['with one -1 may have no elements', [-1, 3], 0, [0, 3]],
  ])('%s', (_what, shape, elements, resolved) => {
    const data = Array.from({ length: elements }, (_, i) => i)
    expect(read(shape, data).shape).toEqual(resolved)
    expect(read(shape, data.map(String), 'BYTES').shape).toEqual(resolved)
    const size = { parameters: { binary_data_size: 4 * elements } }
    const head = JSON.stringify({ inputs: [{ name: 'x', shape, datatype: 'INT32', ...size }] })
    expect(parseRequest(Buffer.from(head), Buffer.alloc(4 * elements)).inputs[0]!.shape).toEqual(resolved)
    const head1 = { name: 'x', datatype: 'INT32' as const, shape: [shape].flat() as number[] }
    expect(rawOf(head1, data).shape).toEqual(resolved)
  })
})

test('any bytes give a message or a ServeError, and no more elements than bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
      let read: InferRequest | undefined
      try {
        read = decodeRequest(bytes)
      } catch (thrown) {
        expect(thrown).toMatchObject({ name: 'ServeError' })
      }
      expect(read?.inputs.length ?? 0).toBeLessThan(200)
    }),
  )
})

describe('numbers as nested lists', () => {
  const integers = fc
    .tuple(fc.array(fc.integer({ min: 1, max: 3 }), { maxLength: 5 }), fc.nat(100))
    .map(([shape, first]) => {
      const data = Uint8Array.from({ length: count(shape) }, (_, i) => first + i)
      return { name: 'x', datatype: 'UINT8' as const, shape, data }
    })

  test('have the lists that the shape says', () => {
    fc.assert(
      fc.property(integers, (tensor) => {
        const lists = (values: unknown[], [, ...inner]: readonly number[]): unknown => {
          if (inner.length === 0) return values
          const step = count(inner)
          const rows = Array.from({ length: values.length / step }, (_, i) =>
            values.slice(i * step, (i + 1) * step),
          )
          return rows.map((row) => lists(row, inner))
        }
        const flat = [...tensor.data]
        const expected = tensor.shape.length === 0 ? flat[0] : lists(flat, tensor.shape)
        expect(JSON.parse(elementsJson(tensor, 1_000_000))).toEqual(expected)
      }),
    )
  })

  test('a list without elements is empty, whatever its shape', () => {
    const tensor = {
      name: 'x',
      datatype: 'FP32' as const,
      shape: [1_000_000_000, 0],
      data: new Uint8Array(0),
    }
    expect(elementsJson(tensor, 100)).toBe('[]')
  })

  test('a shape of more brackets than a request may have is refused before they are written', () => {
    const shape = [1_000_000, ...Array.from({ length: 31 }, () => 1)]
    const tensor = { name: 'x', datatype: 'UINT8' as const, shape, data: new Uint8Array(1_000_000) }
    expect(() => elementsJson(tensor, 6_553_500)).toThrow('larger than max_request_size')
  })

  test('of 8 and 16 bits are those that the datatype means', () => {
    const data = new Uint8Array(Uint16Array.from([0x3c00, 0x7c00, 0xbc00, 0x3c00]).buffer)
    expect(numbersJson({ name: 'x', datatype: 'FP16', shape: [4], data })).toBe('1,null,-1,1')
    const brains = new Uint8Array(Uint16Array.from([0x3f80, 0x7f80, 0xbf80]).buffer)
    expect(numbersJson({ name: 'x', datatype: 'BF16', shape: [3], data: brains })).toBe('1,null,-1')
    const flags = { name: 'x', datatype: 'BOOL' as const, shape: [3], data: new Uint8Array([1, 0, 2]) }
    expect(numbersJson(flags)).toBe('true,false,true')
  })
})

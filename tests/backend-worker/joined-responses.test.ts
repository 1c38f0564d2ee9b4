import { expect, test } from '@jest/globals'
import { joinResponses } from '../../backend-worker/open-inference/join.ts'
import { joinElements } from '../../protocol/tensors/bytes.ts'
import type { RawTensor } from '../../protocol/tensors/tensor.ts'

const text = (element: string | Buffer): { outputs: RawTensor[] } => ({
  outputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: joinElements([element]) }],
})

test('the texts of a stream are joined for a client that asked for none', () => {
  const { outputs } = joinResponses([text('one '), text('two '), text('three')])
  expect(outputs).toEqual(text('one two three').outputs)
})

test('texts that are too large together are refused with the limit that counts', () => {
  const half = Buffer.alloc(32 * 1024 * 1024)
  expect(joinResponses([text(half), text(half)]).outputs[0]!.data.byteLength).toBe(2 * half.byteLength + 4)
  expect(() => joinResponses([text(half), text(half), text('!')])).toThrow(
    expect.objectContaining({
      code: 'RESPONSE_TOO_LARGE',
      message: expect.stringContaining('larger than 67108864 bytes'),
    }),
  )
})

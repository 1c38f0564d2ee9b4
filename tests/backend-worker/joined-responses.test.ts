import { expect, test } from '@jest/globals'
import { joinResponses } from '../../backend-worker/open-inference/join.ts'
import { joinElements } from '../../common/tensors/bytes.ts'
import type { RawTensor } from '../../common/tensors/tensor.ts'

interface Texts {
  outputs: RawTensor[]
}

const text = (element: string | Buffer): Texts => ({
  outputs: [{ name: 'text', datatype: 'BYTES', shape: [1], data: joinElements([element]) }],
})

/** A stream that says how many of its responses were taken. */
class Stream {
  taken = 0
  readonly #responses: readonly Texts[]

  constructor(...responses: Texts[]) {
    this.#responses = responses
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Texts> {
    for (const response of this.#responses) {
      this.taken += 1
      yield await Promise.resolve(response)
    }
  }
}

test('the texts of a stream are joined for a client that asked for none', async () => {
  const { outputs } = await joinResponses(new Stream(text('one '), text('two '), text('three')))
  expect(outputs).toEqual(text('one two three').outputs)
})

test('the only response of a stream is the answer as it is', async () => {
  const only: Texts = {
    outputs: [{ name: 'x', datatype: 'INT8', shape: [2], data: Uint8Array.of(1, 2) }],
  }
  expect(await joinResponses(new Stream(only))).toBe(only)
})

test('texts that are too large together are refused with the limit that counts, and the stream ends there', async () => {
  const half = Buffer.alloc(32 * 1024 * 1024)
  const { outputs } = await joinResponses(new Stream(text(half), text(half)))
  expect(outputs[0]!.data.byteLength).toBe(2 * half.byteLength + 4)
  const stream = new Stream(text(half), text(half), text('!'), text('never made'))
  await expect(joinResponses(stream)).rejects.toMatchObject({
    code: 'RESPONSE_TOO_LARGE',
    message: expect.stringContaining('exceed 67108864 bytes'),
  })
  expect(stream.taken).toBe(3)
})

test.each([
  ['no response', []],
  ['other outputs later', [text('a'), { outputs: [] }, text('never made')]],
  ['numbers', [{ outputs: [{ ...text('a').outputs[0]!, datatype: 'INT8' as const }] }, text('never used')]],
])('a stream of %s is no answer', async (_what, responses) => {
  const stream = new Stream(...responses)
  await expect(joinResponses(stream)).rejects.toMatchObject({ code: 'INVALID_OUTPUT' })
  expect(stream.taken).toBe(Math.min(2, responses.length))
})

import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ChunkParser } from '../../examples/demo/chunk-parser.ts'

const HEAD = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

function parse(pieces: Buffer[]): { status?: number; chunks: string[]; ended: boolean } {
  const seen = { status: undefined as number | undefined, chunks: [] as string[], ended: false }
  const parser = new ChunkParser({
    onHead: (status) => (seen.status = status),
    onChunk: (chunk) => seen.chunks.push(chunk.toString()),
    onEnd: () => (seen.ended = true),
  })
  for (const piece of pieces) parser.push(piece)
  return seen
}

function encode(chunks: string[]): Buffer {
  const coded = chunks.map((chunk) => `${Buffer.byteLength(chunk).toString(16)}\r\n${chunk}\r\n`)
  return Buffer.from(`${HEAD}${coded.join('')}0\r\n\r\n`)
}

describe('the chunk parser of the demo', () => {
  test('finds the same chunks however the bytes are split', () => {
    const texts = fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 8 })
    fc.assert(
      fc.property(texts, fc.integer({ min: 1, max: 30 }), (chunks, step) => {
        const bytes = encode(chunks)
        const pieces: Buffer[] = []
        for (let at = 0; at < bytes.byteLength; at += step) pieces.push(bytes.subarray(at, at + step))
        expect(parse(pieces)).toEqual({ status: 200, chunks, ended: true })
      }),
    )
  })

  test('does not take a broken answer for a whole one', () => {
    const bytes = encode(['a', 'b'])
    expect(parse([bytes.subarray(0, bytes.byteLength - 5)])).toEqual({
      status: 200,
      chunks: ['a', 'b'],
      ended: false,
    })
  })

  test('refuses an answer that is not chunked, and a chunk without a size', () => {
    expect(() => parse([Buffer.from('HTTP/1.1 404 \r\ncontent-length: 2\r\n\r\n{}')])).toThrow('HTTP/1.1 404')
    expect(() => parse([Buffer.from(`${HEAD}zz\r\n`)])).toThrow('no size')
  })
})

import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import {
  FRAME,
  FrameDecoder,
  flagsAt,
  HEADER_BYTES,
  idAt,
  typeAt,
  writeHeader,
} from '../../protocol/frame.ts'

function frameOf(body: Uint8Array): Buffer {
  const frame = Buffer.concat([Buffer.alloc(HEADER_BYTES), body])
  writeHeader(frame, 0, body.byteLength, FRAME.response, 3, 7)
  return frame
}

function decode(chunks: Iterable<Buffer>, maxFrameBytes = 1000): Buffer[] {
  const frames: Buffer[] = []
  const decoder = new FrameDecoder(maxFrameBytes, (chunk, from, to) =>
    frames.push(chunk.subarray(from + HEADER_BYTES, to)),
  )
  for (const chunk of chunks) decoder.push(chunk)
  return frames
}

/** Cuts bytes at the given places; equal places give empty chunks, as sockets may. */
function cut(bytes: Buffer, places: number[]): Buffer[] {
  const ends = [...places.map((place) => place % (bytes.byteLength + 1)), bytes.byteLength].sort(
    (a, b) => a - b,
  )
  return ends.map((end, i) => Buffer.from(bytes.subarray(i === 0 ? 0 : ends[i - 1], end)))
}

const bodies = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 12 })

test('any split of the bytes gives the same frames', () => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(4000), { maxLength: 40 }), (all, places) => {
      const bytes = Buffer.concat(all.map(frameOf))
      expect(decode(cut(bytes, places)).map((frame) => [...frame])).toEqual(all.map((body) => [...body]))
    }),
  )
})

test('one byte at a time gives the same frames as all at once', () => {
  fc.assert(
    fc.property(bodies, (all) => {
      const bytes = Buffer.concat(all.map(frameOf))
      const single = decode(Array.from(bytes, (byte) => Buffer.of(byte)))
      expect(Buffer.concat(single)).toEqual(Buffer.concat(decode([bytes])))
      expect(single).toHaveLength(all.length)
    }),
    { numRuns: 50 },
  )
})

test('a chunk that ends one frame and holds others is read in place, after a copy of the frame that it ends', () => {
  const [first, second, third] = ['first', 'second', 'third'].map((text) => frameOf(Buffer.from(text)))
  const rest = Buffer.concat([first!.subarray(6), second!, third!])
  const inPlace: boolean[] = []
  const decoder = new FrameDecoder(1000, (chunk) => inPlace.push(chunk === rest))
  decoder.push(first!.subarray(0, 6))
  decoder.push(rest)
  expect(inPlace).toEqual([false, true, true])
})

test('the header is big-endian: length without the header, type, flags, id', () => {
  const frame = Buffer.alloc(HEADER_BYTES)
  writeHeader(frame, 0, 0xfffefdfc, FRAME.metric, 0xa5, 0xf1f2f3f4)
  expect(frame.toString('hex')).toBe('fffefdfc0ca5f1f2f3f4')
  expect([typeAt(frame, 0), flagsAt(frame, 0), idAt(frame, 0)]).toEqual([FRAME.metric, 0xa5, 0xf1f2f3f4])
})

test('an announced length over the limit is refused from its header alone, wherever the bytes are cut', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1001, max: 0xffffffff }),
      fc.array(fc.nat(HEADER_BYTES), { maxLength: 4 }),
      (length, places) => {
        const header = Buffer.alloc(HEADER_BYTES)
        header.writeUInt32BE(length)
        expect(() => decode(cut(header, places))).toThrow(expect.objectContaining({ code: 'PROTOCOL' }))
      },
    ),
  )
})

test('a frame of exactly the limit passes', () => {
  expect(decode([frameOf(new Uint8Array(1000))])).toHaveLength(1)
})

test('frames before a bad one are delivered', () => {
  const frames: Buffer[] = []
  const decoder = new FrameDecoder(10, (chunk, from, to) =>
    frames.push(chunk.subarray(from + HEADER_BYTES, to)),
  )
  expect(() =>
    decoder.push(Buffer.concat([frameOf(Buffer.from('good')), frameOf(new Uint8Array(11))])),
  ).toThrow()
  expect(frames.map(String)).toEqual(['good'])
})

test('garbage is refused or waited for, and what is kept never exceeds the limit and one chunk', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 50 }), (chunks) => {
      let delivered = 0
      let pushed = 0
      const decoder = new FrameDecoder(100, (_chunk, from, to) => (delivered += to - from))
      for (const chunk of chunks) {
        try {
          pushed += chunk.byteLength
          decoder.push(Buffer.from(chunk))
        } catch (thrown) {
          expect(thrown).toMatchObject({ code: 'PROTOCOL' })
          return
        }
        expect(pushed - delivered).toBeLessThan(100 + HEADER_BYTES)
      }
    }),
  )
})

test('delivered frames are not overwritten by what comes later', () => {
  fc.assert(
    fc.property(bodies, fc.array(fc.nat(4000), { maxLength: 40 }), (all, places) => {
      const bytes = Buffer.concat(all.map(frameOf))
      const seen: string[] = []
      const frames: Buffer[] = []
      const decoder = new FrameDecoder(1000, (chunk, from, to) => {
        const frame = chunk.subarray(from, to)
        seen.push(frame.toString('hex'))
        frames.push(frame)
      })
      for (const chunk of [...cut(bytes, places), ...cut(bytes, places)]) decoder.push(chunk)
      expect(frames.map((frame) => frame.toString('hex'))).toEqual(seen)
    }),
    { numRuns: 50 },
  )
})

test('who pauses after a frame is told how much was read, and goes on with the rest', () => {
  const all = ['first', 'second', 'third'].map((text) => frameOf(Buffer.from(text)))
  const bytes = Buffer.concat(all)
  const frames: string[] = []
  let isPaused = false
  const decoder = new FrameDecoder(
    1000,
    (chunk, from, to) => {
      frames.push(chunk.toString('latin1', from + HEADER_BYTES, to))
      isPaused = true
    },
    () => isPaused,
  )
  expect(decoder.push(bytes.subarray(0, 6))).toBe(6)
  const reads: number[] = []
  for (let at = 6; at < bytes.length; at += reads.at(-1)!) {
    isPaused = false
    reads.push(decoder.push(bytes.subarray(at)))
  }
  expect(reads).toEqual([all[0]!.length - 6, all[1]!.length, all[2]!.length])
  expect(frames).toEqual(['first', 'second', 'third'])
})

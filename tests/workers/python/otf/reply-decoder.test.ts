import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ServeError } from '../../../../common/errors.ts'
import { type OtfAnswer, ReplyDecoder } from '../../../../frontend/workers/python/otf/reply-decoder.ts'
import { cpuMs } from '../../../support/cpu.ts'
import { bytes, int, reply, text, type Reply } from './replies.ts'

const recorded = JSON.parse(
  readFileSync(join(import.meta.dirname, 'recorded-replies.json'), 'utf8'),
) as Record<string, string>

type Seen =
  | { answer: OtfAnswer; body: string }
  | { failed: string; code: number; message: string }
  | { tooLarge: string; bytes: number }
  | { end: number; message: string }

/** What a decoder says of these chunks. An item is shown as the answer that it stands for. */
function decode(chunks: Iterable<Buffer>, limit = 1000): Seen[] {
  const seen: Seen[] = []
  const show = (answer: OtfAnswer, chunk: Buffer, from: number, to: number): void => {
    seen.push({ answer, body: chunk.toString('latin1', from, to) })
  }
  const decoder = new ReplyDecoder(limit, {
    onAnswer: show,
    onItem: (requestId, chunk, from, to) => {
      const answer = { requestId, contentType: '', status: 200, reason: '', headers: {}, streamNext: 'true' }
      show(answer, chunk, from, to)
    },
    onTooLarge: ({ requestId }, size) => seen.push({ tooLarge: requestId, bytes: size }),
    onFailed: (failed, code, message) => seen.push({ failed, code, message }),
    onEnd: (end, message) => seen.push({ end, message }),
  })
  for (const chunk of chunks) decoder.push(chunk)
  return seen
}

function frame(name: string): Buffer {
  return Buffer.from(recorded[name]!, 'base64')
}

/** Cuts bytes at the given places; equal places give empty chunks, as sockets may. */
function cut(whole: Buffer, places: number[]): Buffer[] {
  const ends = [...places.map((place) => place % (whole.byteLength + 1)), whole.byteLength].sort(
    (a, b) => a - b,
  )
  return ends.map((end, i) => Buffer.from(whole.subarray(i === 0 ? 0 : ends[i - 1], end)))
}

function answers(seen: Seen[]): (OtfAnswer & { body: string })[] {
  return seen.flatMap((each) => ('answer' in each ? [{ ...each.answer, body: each.body }] : []))
}

describe('frames that TorchServe’s own codec made', () => {
  test('replies to LOAD have a code and no answers', () => {
    expect(decode([frame('load')])).toEqual([{ end: 200, message: '' }])
    expect(decode([frame('loadFailed')])).toEqual([{ end: 507, message: 'System out of memory' }])
  })

  test('a batch: status, reason, content type, headers and bodies of each request', () => {
    expect(answers(decode([frame('whole')]))).toEqual([
      {
        ...{ requestId: 'first', contentType: 'text/plain', status: 201, reason: 'Made' },
        ...{ headers: { 'content-type': 'text/plain' }, streamNext: undefined, body: 'grÃ¼n' },
      },
      {
        ...{ requestId: 'second', contentType: '', status: 200, reason: '' },
        ...{
          headers: { 'X-Umlaut': 'ä' },
          streamNext: undefined,
          body: '{\n  "a": [\n    1,\n    2\n  ]\n}',
        },
      },
    ])
  })

  test('a stream: three items and the last one, each the end of a reply', () => {
    const seen = decode([frame('stream')])
    expect(answers(seen).map(({ body, streamNext }) => [body, streamNext])).toEqual([
      ['one', 'true'],
      ['', 'true'],
      ['three', 'true'],
      ['last', 'false'],
    ])
    expect(seen.filter((each) => 'end' in each)).toHaveLength(4)
  })

  test('a step of continuous batching: goes on, has ended, never was a stream', () => {
    expect(answers(decode([frame('steps')])).map(({ streamNext }) => streamNext)).toEqual([
      'true',
      'false',
      undefined,
    ])
  })

  test('an error names its requests', () => {
    expect(decode([frame('failed')])).toEqual([
      { failed: 'x', code: 503, message: 'Prediction failed' },
      { failed: 'y', code: 503, message: 'Prediction failed' },
      { end: 503, message: 'Prediction failed' },
    ])
    expect(decode([frame('unsupported')])[0]).toEqual({
      failed: 'x',
      code: 503,
      message: 'Unsupported model output data type.',
    })
  })

  test('come out the same wherever they are cut', () => {
    for (const name in recorded) {
      const whole = decode([frame(name)])
      expect(decode(Array.from(frame(name), (byte) => Buffer.of(byte)))).toEqual(whole)
      for (let at = 1; at < frame(name).byteLength; at += 1) {
        expect(decode(cut(frame(name), [at]))).toEqual(whole)
      }
    }
  })
})

const word = fc.string({ maxLength: 12, unit: 'grapheme' })
const header = fc.tuple(
  word.filter((name) => name !== 'ts_stream_next' && name !== '__proto__'),
  word,
)
const answer = fc.record({
  requestId: fc.stringMatching(/^[\w-]{0,36}$/),
  contentType: word,
  status: fc.integer({ min: 100, max: 999 }),
  reason: word,
  headers: fc.array(header, { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  streamNext: fc.constantFrom(undefined, 'true', 'false', 'odd'),
  body: fc.uint8Array({ maxLength: 300 }).map((body) => Buffer.from(body)),
})
const replies: fc.Arbitrary<Reply[]> = fc.array(
  fc.record({
    code: fc.constantFrom(200, 200, 200, 503, 499),
    message: word,
    answers: fc.array(answer, { maxLength: 4 }),
  }),
  { maxLength: 6 },
)

/** What a decoder has to say of them. */
function expected({ code, message, answers: all }: Reply): Seen[] {
  const said = code === 200 ? '' : message
  return [
    ...all.map(({ body, ...head }) =>
      code === 200
        ? { answer: head, body: body.toString('latin1') }
        : { failed: head.requestId, code, message },
    ),
    { end: code, message: said },
  ]
}

test('whatever a worker may say is read back, wherever it is cut', () => {
  fc.assert(
    fc.property(replies, fc.array(fc.nat(4000), { maxLength: 40 }), (all, places) => {
      const whole = Buffer.concat(all.map(reply))
      expect(decode(cut(whole, places))).toEqual(all.flatMap(expected))
    }),
  )
})

describe('bounds', () => {
  const head = { contentType: '', status: 200, reason: '', headers: {}, streamNext: undefined }

  test('a body over the limit is skipped, says whose it was, and what follows is read', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(9000), { maxLength: 20 }), (places) => {
        const whole = reply({
          code: 200,
          message: '',
          answers: [
            { ...head, requestId: 'big', body: Buffer.alloc(5000, 120) },
            { ...head, requestId: 'small', body: Buffer.from('ok') },
          ],
        })
        expect(decode(cut(whole, places))).toEqual([
          { tooLarge: 'big', bytes: 5000 },
          { answer: { ...head, requestId: 'small' }, body: 'ok' },
          { end: 200, message: '' },
        ])
      }),
    )
  })

  test('an item of a stream over the limit, too', () => {
    const body = Buffer.alloc(5000)
    const whole = reply({
      code: 200,
      message: '',
      answers: [{ ...head, requestId: 'r', streamNext: 'true', body }],
    })
    expect(decode([whole])[0]).toEqual({ tooLarge: 'r', bytes: 5000 })
  })

  test('lengths and counts that cannot be are refused as soon as they are read', () => {
    const start = Buffer.concat([int(200), text('m')])
    const upToHeaders = Buffer.concat([start, text('id'), text(''), int(200), text('')])
    const bad = {
      'a negative message': Buffer.concat([int(200), int(-1)]),
      'a message over the limit': Buffer.concat([int(200), int(1001)]),
      'a negative id that is no end': Buffer.concat([start, int(-2)]),
      'an enormous id': Buffer.concat([start, int(0x7fffffff)]),
      'a content type over the limit': Buffer.concat([start, text('id'), int(1001)]),
      'a negative number of headers': Buffer.concat([upToHeaders, int(-1)]),
      'too many headers': Buffer.concat([upToHeaders, int(100_000)]),
      'headers over the limit together': Buffer.concat([
        ...[upToHeaders, int(2), text('a'), bytes(Buffer.alloc(600)), text('b'), int(600)],
      ]),
      'a negative body': Buffer.concat([upToHeaders, int(0), int(-1)]),
    }
    for (const [name, chunk] of Object.entries(bad)) {
      let thrown: unknown
      try {
        decode([chunk])
      } catch (error) {
        thrown = error
      }
      expect([name, thrown instanceof ServeError && thrown.code]).toEqual([name, 'PROTOCOL'])
    }
  })

  test('random bytes are read or refused, and nothing else happens', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 10 }), (chunks) => {
        try {
          decode(chunks.map((chunk) => Buffer.from(chunk)))
        } catch (error) {
          expect(error).toMatchObject({ name: 'ServeError', code: 'PROTOCOL' })
        }
      }),
      { numRuns: 500 },
    )
  })

  test('a large body in small chunks takes time in proportion to its size', () => {
    const size = 6_000_000
    const whole = reply({
      code: 200,
      message: '',
      answers: [{ ...head, requestId: 'r', body: Buffer.alloc(size, 1) }],
    })
    const time = (chunkBytes: number): number => {
      const chunks = Array.from({ length: Math.ceil(whole.byteLength / chunkBytes) }, (_, i) =>
        whole.subarray(i * chunkBytes, (i + 1) * chunkBytes),
      )
      const decoder = new ReplyDecoder(size, {
        ...{ onItem: () => undefined, onTooLarge: () => undefined, onFailed: () => undefined },
        ...{ onEnd: () => undefined, onAnswer: () => undefined },
      })
      return cpuMs(() => {
        for (const chunk of chunks) decoder.push(chunk)
      })
    }
    time(65_536)
    // Parsing 6 MB again for each of 3000 chunks would take many seconds.
    expect(time(2048)).toBeLessThan(1000)
  })
})

import { ServeError } from '../../../common/errors.ts'
import { decodeFromWorker, decodeToWorker } from '../../../protocol/codec.ts'
import { frameOf } from '../../support/frames.ts'
import { FrameDecoder } from '../../../protocol/frame.ts'
import type { FromWorker, ToWorker } from '../../../protocol/messages.ts'
import { type OtfReplyEvents, ReplyDecoder } from '../../../frontend/workers/python/otf/reply-decoder.ts'
import { mustEqual, type Target } from '../target.ts'

const MAX_FRAME = 1_000_000

const FROM_WORKER: FromWorker[] = [
  { type: 'ready', protocolVersion: 1, pid: 7, rank: 0, runtime: 'node' },
  { type: 'loaded', methods: ['predict'] },
  { type: 'response', id: 1, body: Buffer.from('item'), ts_stream_next: 'true' },
  {
    type: 'response',
    id: 2,
    body: Buffer.from('{}'),
    contentType: 'application/json',
    status: 200,
    headers: { a: 'b' },
  },
  { type: 'failure', id: 3, error: { code: 'HANDLER_FAILED', message: 'no' } },
  { type: 'finished', id: 1 },
  { type: 'alive', id: 1 },
  { type: 'withdrawn', ids: [1, 2] },
  { type: 'taken', id: 1, inputs: 2 },
  { type: 'log', level: 'info', message: 'hello' },
  {
    type: 'metric',
    name: 'm',
    kind: 'counter',
    unit: 'ms',
    dimensions: { a: 'b' },
    values: [1.5],
    requestIds: ['x'],
  },
  { type: 'pong', nonce: 3 },
]

const TO_WORKER: ToWorker[] = [
  {
    type: 'predict',
    requests: [
      {
        method: 'handle',
        id: 1,
        requestId: 'r',
        headers: 'a:b\n',
        parts: [{ name: 'body', contentType: 'text/plain', data: Buffer.from('x') }],
        window: 100,
      },
    ],
  },
  { type: 'cancel', id: 1, reason: 'timeout' },
  { type: 'withdraw', ids: [1] },
  { type: 'sequenceEnd', sequence: 's' },
  { type: 'ping', nonce: 1 },
  { type: 'unload' },
  { type: 'credit', id: 1, bytes: 5 },
  { type: 'input', id: 1, data: Buffer.from('x') },
]

/** What a decoder says about these bytes in pieces of this size. */
function framesOf(input: Buffer, piece: number, decode: (frame: Buffer) => unknown): unknown[] {
  const seen: unknown[] = []
  const decoder = new FrameDecoder(MAX_FRAME, (chunk, from, to) => {
    seen.push(decode(chunk.subarray(from, to)))
  })
  return withError(seen, () => {
    for (let at = 0; at < input.length; at += piece) decoder.push(input.subarray(at, at + piece))
  })
}

function withError(seen: unknown[], read: () => void): unknown[] {
  try {
    read()
  } catch (error) {
    if (!(error instanceof ServeError)) throw error
    seen.push(error.code)
  }
  return seen
}

function split(name: string, read: (input: Buffer, piece: number) => unknown[]): (input: Buffer) => void {
  return (input) => {
    const whole = read(input, Math.max(input.length, 1))
    mustEqual(`${name} in pieces of 1`, read(input, 1), whole)
    mustEqual(`${name} in pieces of 7`, read(input, 7), whole)
  }
}

const FIELDS = [
  'requests',
  'method',
  'requestId',
  'headers',
  'parts',
  'size',
  'contentType',
  'status',
  'error',
  'ids',
]

/** The frames of a worker, which is as untrusted as its handler. */
export const fromWorker: Target = {
  name: 'frames-from-worker',
  seeds: () => FROM_WORKER.map(frameOf),
  words: FIELDS,
  run: split('frames', (input, piece) => framesOf(input, piece, decodeFromWorker)),
}

export const toWorker: Target = {
  name: 'frames-to-worker',
  seeds: () => TO_WORKER.map(frameOf),
  words: FIELDS,
  run: split('frames', (input, piece) => framesOf(input, piece, decodeToWorker)),
}

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

const text = (value: string): Buffer => Buffer.concat([int(Buffer.byteLength(value)), Buffer.from(value)])

function reply(code: number, message: string, answers: Buffer[]): Buffer {
  return Buffer.concat([int(code), text(message), ...answers, int(-1)])
}

function answer(id: string, headers: [string, string][], body: string): Buffer {
  const lines = headers.flatMap(([name, value]) => [text(name), text(value)])
  return Buffer.concat([text(id), text(''), int(200), text(''), int(headers.length), ...lines, text(body)])
}

function repliesOf(input: Buffer, piece: number): unknown[] {
  const seen: unknown[] = []
  const body = (chunk: Buffer, from: number, to: number): string => chunk.toString('latin1', from, to)
  const events: OtfReplyEvents = {
    // An item may be read at once or field by field, so both are noted in the same way.
    onAnswer: ({ requestId, streamNext, headers, status, contentType, reason }, chunk, from, to) =>
      seen.push([requestId, streamNext, headers, status, contentType, reason, body(chunk, from, to)]),
    onItem: (id, chunk, from, to) => seen.push([id, 'true', {}, 200, '', '', body(chunk, from, to)]),
    onTooLarge: ({ requestId }, bytes) => seen.push(['too large', requestId, bytes]),
    onFailed: (id, code, message) => seen.push(['failed', id, code, message]),
    onEnd: (code, message) => seen.push(['end', code, message]),
  }
  const decoder = new ReplyDecoder(10_000, events)
  return withError(seen, () => {
    for (let at = 0; at < input.length; at += piece) decoder.push(input.subarray(at, at + piece))
  })
}

/** The replies of TorchServe's Python worker. */
export const otf: Target = {
  name: 'otf-replies',
  seeds: () => [
    reply(200, 'loaded', []),
    reply(200, 'Prediction success', [answer('id-1', [['ts_stream_next', 'true']], 'item')]),
    reply(200, '', [answer('a', [['x', 'y']], 'one'), answer('b', [], 'two')]),
    reply(507, 'out of memory', [answer('a', [], '')]),
  ],
  words: ['ts_stream_next', 'true', 'false', '__proto__'],
  run: split('replies', repliesOf),
}

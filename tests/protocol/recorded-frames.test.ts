import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { decodeFromWorker, encode } from '../../protocol/codec.ts'
import type { FromWorker, LoadMessage, PredictMessage, ToWorker } from '../../protocol/messages.ts'
import { Outbox } from '../../protocol/outbox.ts'
import { isObject } from '../../common/json.ts'
import { execa } from '../support/tools.ts'

/** Frames that this side and the Python worker have recorded for each other; `data` and `body` as text. */
interface Recorded {
  toWorker: { message: Record<string, unknown>; hex: string }[]
  fromWorker: { message: Record<string, unknown>; hex: string }[]
}

const PATH = join(import.meta.dirname, 'recorded-frames.json')
const recorded = JSON.parse(readFileSync(PATH, 'utf8')) as Recorded
const python = join(import.meta.dirname, '..', '..', 'python')

const LOAD: LoadMessage = {
  type: 'load',
  modelName: 'm',
  modelVersion: '1.0',
  modelDir: '/models/m',
  handlerPath: '',
  manifest: { model: { handler: 'handler.py' } },
  modelConfig: { own: { list: [1, 1.5, 'é', null, true] } },
  batchSize: 4,
  gpuId: -1,
  serverVersion: '0.1.0',
  maxResponseBytes: 6_553_500,
  maxUnsentBytes: 6_553_500,
  decodeInput: true,
  metrics: {
    declared: [{ name: 'Own', kind: 'counter', unit: 'count', dimensions: ['Kind'] }],
    others: true,
  },
}

const PREDICT: PredictMessage = {
  type: 'predict',
  requests: [
    {
      id: 4_000_000_000,
      requestId: 'first',
      method: 'handle',
      headers: 'X-Mine\nyes\n',
      window: 262_144,
      deadline: 1_800_000_000_000,
      parts: [
        { name: 'body', contentType: 'application/json', data: Buffer.from('{"a":1}') },
        { name: 'more', data: Buffer.from('é') },
      ],
    },
    { id: 2, requestId: 'second', method: 'explain', headers: '', window: 1, parts: [] },
  ],
}

const TO_WORKER: ToWorker[] = [
  LOAD,
  PREDICT,
  { type: 'credit', id: 7, bytes: 131_072 },
  { type: 'cancel', id: 7, reason: 'client left' },
  { type: 'cancel', id: 7, reason: 'operator' },
  { type: 'ping', nonce: 4_000_000_000 },
  { type: 'sequenceEnd', sequence: 's' },
  { type: 'unload' },
]

function frameOf(message: ToWorker): Buffer {
  const written: Buffer[] = []
  const outbox = new Outbox()
  encode(outbox, message)
  const socket = { writableLength: 0, write: (bytes: Uint8Array) => written.push(Buffer.from(bytes)) }
  outbox.flush(socket as unknown as Parameters<Outbox['flush']>[0])
  return Buffer.concat(written)
}

/** The message as JSON can hold it: bytes as text. */
function plain(message: unknown): unknown {
  if (message instanceof Uint8Array) return Buffer.from(message).toString()
  if (Array.isArray(message)) return message.map(plain)
  if (!isObject(message)) return message
  return Object.fromEntries(Object.entries(message).map(([key, value]) => [key, plain(value)]))
}

test('what the server sends is as recorded', () => {
  const sent = TO_WORKER.map((message) => ({
    message: plain(message) as Record<string, unknown>,
    hex: frameOf(message).toString('hex'),
  }))
  if (process.env['UPDATE_RECORDING'] !== undefined)
    writeFileSync(PATH, `${JSON.stringify({ ...recorded, toWorker: sent }, null, 2)}\n`)
  expect(sent).toEqual(recorded.toWorker)
})

test.each(recorded.fromWorker)('a Python worker is understood: $message.type', ({ message, hex }) => {
  const decoded: FromWorker = decodeFromWorker(Buffer.from(hex, 'hex'))
  const { error, ...rest } = plain(decoded) as { error?: { detail?: string } }
  // Its traceback has a form for each version of Python.
  delete error?.detail
  expect(error === undefined ? rest : { ...rest, error }).toEqual(message)
})

test('the tests of the Python worker pass', async () => {
  const { stderr } = await execa('python3', ['-B', '-m', 'unittest', 'discover', '-s', 'tests', '-t', '.'], {
    cwd: python,
  })
  expect(stderr).toMatch(/\nOK/)
})

import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { joinHeaders } from '../../../../common/headers.ts'
import {
  encodeLoad,
  encodePredict,
  type OtfLoad,
  type OtfRequest,
} from '../../../../frontend/workers/python/otf/encode.ts'
import { describePython } from '../../../support/python/test-python.ts'
import { bytes, int, text } from './replies.ts'
import { execa } from '../../../support/tools.ts'

const load: OtfLoad = {
  modelName: 'grün',
  modelDir: '/models/grün',
  batchSize: 3,
  handler: 'handler.py:entry',
  gpuId: -1,
  envelope: '',
  limitMaxImagePixels: true,
}

test('LOAD, byte by byte', () => {
  const expected = [Buffer.from('L'), text('grün'), text('/models/grün'), int(3), text('handler.py:entry')]
  expect(encodeLoad(load)).toEqual(Buffer.concat([...expected, int(-1), text(''), Buffer.of(1)]))
  const other = { ...load, gpuId: 2, envelope: 'json', limitMaxImagePixels: false }
  expect(encodeLoad(other)).toEqual(Buffer.concat([...expected, int(2), text('json'), Buffer.of(0)]))
})

test('PREDICT, byte by byte: requests with headers and parameters, each list with its end', () => {
  const headers = joinHeaders({ 'X-Größe': '1 €', empty: '' })
  const request: OtfRequest = {
    requestId: 'id-1',
    headers,
    parts: [
      { name: 'body', contentType: 'application/json', data: Buffer.from('{}') },
      { name: 'daten', data: Buffer.alloc(0) },
    ],
  }
  const cached: OtfRequest = { requestId: 'id-2', headers: '', parts: [] }
  expect(encodePredict([request, cached])).toEqual(
    Buffer.concat([
      ...[Buffer.from('I'), text('id-1'), text('X-Größe'), text('1 €'), text('empty'), text(''), int(-1)],
      ...[
        text('body'),
        text('application/json'),
        text('{}'),
        text('daten'),
        text(''),
        bytes(Buffer.alloc(0)),
      ],
      ...[int(-1), text('id-2'), int(-1), int(-1), int(-1)],
    ]),
  )
  expect(encodePredict([])).toEqual(Buffer.concat([Buffer.from('I'), int(-1)]))
})

const word = fc.string({ maxLength: 20, unit: 'grapheme' }).filter((each) => !/[\n]|__proto__/.test(each))
const request = fc.record({
  requestId: fc.uuid(),
  headers: fc.dictionary(word, word, { maxKeys: 5 }),
  parts: fc.array(
    fc.record({
      name: word,
      contentType: fc.constantFrom(undefined, '', 'text/plain', 'application/octet-stream'),
      data: fc.uint8Array({ maxLength: 200 }),
    }),
    { maxLength: 4 },
  ),
})
/** Reads frames from a file with TorchServe's own codec, and writes what it read as JSON lines. */
const READER = join(import.meta.dirname, 'read_frames.py')

await describePython('TorchServe’s own codec', ({ python }) => {
  test('reads LOAD', async () => {
    const { stdout } = await execa(python, [READER], {
      input: encodeLoad(load),
      env: { TS_DECODE_INPUT_REQUEST: 'false' },
    })
    const hex = (value: string): string => Buffer.from(value).toString('hex')
    expect(JSON.parse(stdout)).toEqual({
      modelName: hex('grün'),
      modelPath: hex('/models/grün'),
      batchSize: 3,
      handler: hex('handler.py:entry'),
      envelope: '',
      limitMaxImagePixels: true,
    })
  })

  test('reads every batch of requests as it was meant', async () => {
    const batches = fc.sample(fc.array(request, { maxLength: 4 }), 200)
    const frames = batches.map((batch) =>
      encodePredict(batch.map((each) => ({ ...each, headers: joinHeaders(each.headers) }))),
    )
    const { stdout } = await execa(python, [READER], {
      input: Buffer.concat(frames),
      env: { TS_DECODE_INPUT_REQUEST: 'false' },
    })
    const hex = (value: string | Uint8Array): string => Buffer.from(value as string).toString('hex')
    expect(stdout.split('\n').map((line) => JSON.parse(line) as unknown)).toEqual(
      batches.map((batch) =>
        batch.map(({ requestId, headers, parts }) => ({
          requestId: hex(requestId),
          headers: Object.entries(headers).map(([name, value]) => ({ name: hex(name), value: hex(value) })),
          parameters: parts.map(({ name, contentType = '', data }) => ({
            name,
            contentType,
            value: hex(data),
          })),
        })),
      ),
    )
  })
})

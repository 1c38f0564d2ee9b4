import { describe, expect, test } from '@jest/globals'
import type { FromWorker, PredictRequest } from '../../protocol/messages.ts'
import { encodePredict } from '../../frontend/workers/python/otf/encode.ts'
import { ReplyDecoder } from '../../frontend/workers/python/otf/reply-decoder.ts'
import { PythonSession, type PythonSessionOptions } from '../../frontend/workers/python/session.ts'
import { reply, type Reply } from './python/otf/replies.ts'

/** A session whose worker is this test. */
class Rig {
  readonly written: Buffer[] = []
  readonly messages: FromWorker[] = []
  readonly items: string[] = []
  readonly broken: [number, string][] = []
  listening = true
  readonly session: PythonSession
  readonly #decoder: ReplyDecoder

  constructor(options: Partial<PythonSessionOptions> = {}) {
    const all = {
      continuousBatching: false,
      maxResponseBytes: 10_000,
      maxUnsentBytes: 5000,
      maxUnsentBytesTogether: 12_000,
      ...options,
    }
    this.session = new PythonSession(
      all,
      { write: (frame) => this.written.push(frame), listen: (on) => (this.listening = on) },
      {
        onMessage: (_rank, message) => this.messages.push(message),
        itemsOf: () => (id, chunk, from, to) => {
          this.items.push(`${id} ${chunk.toString('latin1', from, to)}`)
        },
        onBroken: (id, { code }) => this.broken.push([id, code]),
      },
    )
    this.#decoder = new ReplyDecoder(all.maxResponseBytes, this.session)
  }

  predict(...requests: PredictRequest[]): void {
    this.session.send({ type: 'predict', requests })
  }

  describe(request: PredictRequest): void {
    this.session.send({ type: 'predict', requests: [{ ...request, method: 'describe' }] })
  }

  cancel(...ids: number[]): void {
    for (const id of ids) this.session.send({ type: 'cancel', id, reason: 'client left' })
  }

  /** The worker answers these, `name: body` each, with this mark. */
  answer(streamNext: string | undefined, bodies: Record<string, string>): void {
    const answers = Object.entries(bodies).map(([requestId, body]): Reply['answers'][0] => ({
      ...{ requestId, contentType: '', status: 200, reason: '', headers: {}, streamNext },
      body: Buffer.from(body),
    }))
    this.#decoder.push(reply({ code: 200, message: '', answers }))
  }

  fail(code: number, message: string, ...names: string[]): void {
    const answers = names.map((requestId): Reply['answers'][0] => ({
      ...{ requestId, contentType: '', status: code, reason: '', headers: {}, streamNext: undefined },
      body: Buffer.from('error'),
    }))
    this.#decoder.push(reply({ code, message, answers }))
  }

  /** Names of the requests in each frame. */
  get sent(): string[][] {
    return this.written.map((frame) =>
      [...frame.toString('latin1').matchAll(/r\d+(#\d+)?/g)].map(([name]) => name),
    )
  }

  async turn(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve))
  }
}

function request(id: number, name = `r${id}`, window = 1000): PredictRequest {
  return {
    method: 'handle',
    id,
    requestId: name,
    headers: 'a\nb\n',
    parts: [{ name: 'body', data: Buffer.from('in') }],
    window,
  }
}

describe('batches', () => {
  test('are sent at once, one message each, and answers find their request by its id', () => {
    const rig = new Rig()
    rig.predict(request(1), request(2))
    rig.predict(request(3))
    expect(rig.written[0]).toEqual(encodePredict([request(1), request(2)]))
    expect(rig.sent).toEqual([['r1', 'r2'], ['r3']])
    rig.answer(undefined, { r3: 'three', nobody: 'x' })
    rig.answer('true', { r1: 'item' })
    rig.answer('false', { r1: 'end', r2: 'two' })
    expect(rig.items).toEqual(['1 item'])
    expect(
      rig.messages.map((m) => m.type === 'response' && [m.id, String(m.body), m.ts_stream_next]),
    ).toEqual([
      [3, 'three', undefined],
      [1, 'end', 'false'],
      [2, 'two', 'false'],
    ])
  })

  test('an error is of the requests that it names', () => {
    const rig = new Rig()
    rig.predict(request(1))
    rig.predict(request(2))
    rig.fail(503, 'Prediction failed', 'r2')
    rig.fail(503, 'own words', 'r1')
    expect(rig.messages).toMatchObject([
      { type: 'failure', id: 2, error: { code: 'HANDLER_FAILED', message: 'Prediction failed' } },
      { type: 'failure', id: 1, error: { code: 'HANDLER_REJECTED', message: 'own words', status: 503 } },
    ])
  })

  test('unwanted resolves when nobody waits for any request, though the worker may be at it', async () => {
    const rig = new Rig()
    await rig.session.unwanted()
    rig.predict(request(1), request(2))
    let unwanted = false
    const waiting = rig.session.unwanted().then(() => (unwanted = true))
    rig.answer(undefined, { r1: '' })
    await rig.turn()
    expect(unwanted).toBe(false)
    rig.cancel(2)
    await waiting
  })
})

describe('readers that are too slow', () => {
  const item = 'x'.repeat(900)

  test('the only one: the worker is not listened to until there is credit, or it leaves', () => {
    const rig = new Rig()
    rig.predict(request(1))
    rig.answer('true', { r1: item })
    expect(rig.listening).toBe(true)
    rig.answer('true', { r1: item })
    expect(rig.listening).toBe(false)
    rig.session.send({ type: 'credit', id: 1, bytes: 964 })
    expect(rig.listening).toBe(true)
    rig.answer('true', { r1: item })
    expect(rig.listening).toBe(false)
    rig.cancel(1)
    expect(rig.listening).toBe(true)
  })

  test('one of several: the others go on, and it fails when too much has piled up', () => {
    const rig = new Rig()
    rig.predict(request(1), request(2))
    for (let i = 0; i < 7; i += 1) rig.answer('true', { r1: item, r2: '' })
    expect([rig.listening, rig.broken]).toEqual([true, [[1, 'SEND_OVERFLOW']]])
  })

  test('several of many: the one with most fails when too much has piled up of all together', () => {
    const rig = new Rig()
    rig.predict(request(1), request(2), request(3), request(4), request(5))
    for (let i = 0; i < 4; i += 1) rig.answer('true', { r1: item, r2: item, r3: item, r5: '' })
    rig.answer('true', { r3: item, r4: item, r5: '' })
    for (let i = 0; rig.broken.length === 0; i += 1) rig.answer('true', { r4: item, r5: '' })
    expect([rig.listening, rig.broken]).toEqual([true, [[3, 'SEND_OVERFLOW']]])
    rig.cancel(3)
    rig.answer('true', { r4: item, r5: '' })
    expect(rig.broken).toHaveLength(1)
  })

  test('what is beyond the window waits for credit, in order, and does not reach the reply before', () => {
    const rig = new Rig()
    rig.predict(request(1), request(2))
    for (const name of ['a', 'b', 'c', 'd']) rig.answer('true', { r1: name + item, r2: '' })
    const got = () => rig.items.filter((each) => each.startsWith('1')).map((each) => each[2])
    expect(got()).toEqual(['a', 'b'])
    rig.session.send({ type: 'credit', id: 1, bytes: 965 })
    expect(got()).toEqual(['a', 'b', 'c'])
    rig.answer('true', { r1: `e${item}` })
    rig.session.send({ type: 'credit', id: 1, bytes: 2 * 965 })
    expect(got()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })

  test('an end lets all of it go, a cut or a client that leaves drops it', () => {
    const rig = new Rig()
    rig.predict(request(1), request(2), request(3))
    for (let k = 0; k < 4; k += 1) rig.answer('true', { r1: `${k}${item}`, r2: item, r3: '' })
    rig.cancel(2)
    rig.answer('false', { r1: 'end', r2: 'end' })
    expect(rig.items.map((each) => each.slice(0, 3)).filter((each) => each.startsWith('1'))).toEqual([
      ...['1 0', '1 1', '1 2', '1 3'],
    ])
    expect(rig.items.filter((each) => each.startsWith('2'))).toHaveLength(2)
    expect(rig.messages.at(-2)).toMatchObject({ type: 'response', id: 1 })
  })

  test('a new request lets a worker go on that was made to wait', () => {
    const rig = new Rig()
    rig.predict(request(1))
    rig.answer('true', { r1: item })
    rig.answer('true', { r1: item })
    expect(rig.listening).toBe(false)
    rig.predict(request(2))
    expect(rig.listening).toBe(true)
    rig.answer('false', { r2: '' })
    expect(rig.listening).toBe(false)
  })
})

describe('steps', () => {
  const step = async (rig: Rig): Promise<string[]> => {
    await rig.turn()
    return rig.sent.at(-1)!
  }

  test('what comes in one turn shares the first step; a step waits for the reply to the last one', async () => {
    const rig = new Rig({ continuousBatching: true })
    rig.predict(request(1))
    rig.predict(request(2))
    expect(await step(rig)).toEqual(['r1', 'r2'])
    rig.predict(request(3))
    await rig.turn()
    expect(rig.written).toHaveLength(1)
    rig.answer('true', { r1: 'a', r2: 'b' })
    expect(rig.sent.at(-1)).toEqual(['r1', 'r2', 'r3'])
  })

  test('the input is sent in the first step only', async () => {
    const rig = new Rig({ continuousBatching: true })
    rig.predict(request(1))
    await rig.turn()
    rig.answer('true', { r1: 'a' })
    const cached = { ...request(1), parts: [] }
    expect(rig.written).toEqual([encodePredict([request(1)]), encodePredict([cached])])
  })

  test('who was cancelled is missing in the next step, and ends', async () => {
    const rig = new Rig({ continuousBatching: true })
    rig.predict(request(1))
    rig.predict(request(2))
    await rig.turn()
    rig.predict(request(3))
    rig.cancel(1, 3)
    expect(rig.messages).toMatchObject([{ type: 'failure', id: 3, error: { code: 'CANCELLED' } }])
    rig.answer('true', { r1: 'a', r2: 'b' })
    expect(rig.sent.at(-1)).toEqual(['r2'])
    expect(rig.messages.at(-1)).toMatchObject({ type: 'failure', id: 1 })
  })

  test('a describe is alone: it waits until nobody runs, and the next ones wait for it', async () => {
    const rig = new Rig({ continuousBatching: true })
    rig.predict(request(1))
    rig.describe(request(2))
    rig.predict(request(3))
    expect(await step(rig)).toEqual(['r1'])
    rig.answer('true', { r1: 'a' })
    expect(rig.sent.at(-1)).toEqual(['r1'])
    rig.answer('false', { r1: 'b' })
    expect(rig.sent.at(-1)).toEqual(['r2'])
    rig.answer(undefined, { r2: '{}' })
    expect(rig.sent.at(-1)).toEqual(['r3'])
  })

  test('no step is made while all readers are too slow', async () => {
    const rig = new Rig({ continuousBatching: true })
    rig.predict(request(1))
    await rig.turn()
    rig.answer('true', { r1: 'x'.repeat(2000) })
    await rig.turn()
    expect(rig.written).toHaveLength(1)
    rig.session.send({ type: 'credit', id: 1, bytes: 2064 })
    expect(await step(rig)).toEqual(['r1'])
    expect(rig.written).toHaveLength(2)
  })
})

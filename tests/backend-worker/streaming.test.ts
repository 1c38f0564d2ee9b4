import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { itemCost } from '../../protocol/credit-stream.ts'
import type { RequestOptions } from '../support/worker-process.ts'
import { type Answer, startWorker, type WorkerConnection } from '../support/worker-process.ts'
import { run, SCRIPTED } from './scripted.ts'

let worker: WorkerConnection
let id = 0
beforeAll(async () => {
  worker = await startWorker(SCRIPTED, {}, { maxResponseBytes: 1000, maxUnsentBytes: 2000 })
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
  expect(worker.process.stderr).toBe('')
})

async function answer(code: string, more?: RequestOptions): Promise<Answer> {
  worker.predict(run(++id, code, {}, more))
  return worker.answer(id)
}

function start(code: string, size = 1, more?: RequestOptions): number[] {
  const ids = Array.from({ length: size }, () => ++id)
  worker.predict(...ids.map((one) => run(one, code, {}, more)))
  return ids
}

/** Waits until the handler logs this. */
async function logged(message: string): Promise<void> {
  while ((await worker.next('log')).message !== message);
}

/** The messages for a request so far. */
function soFar(request: number): string[] {
  return worker.received.flatMap((message) =>
    message.type === 'response' && message.id === request ? [Buffer.from(message.body).toString()] : [],
  )
}

const credit = (request: number, bytes: number): void => {
  worker.send({ type: 'credit', id: request, bytes })
}

test('an intermediate response that is undefined sends nothing but that the request goes on', async () => {
  const { items } = await answer(
    "for (let k = 0; k < 3; k++) { await send([undefined]); await new Promise((f) => setTimeout(f, 250)) }\nreturn ['end']",
  )
  expect(items).toEqual(['end'])
  const signs = worker.received.filter((message) => message.type === 'alive' && message.id === id)
  expect(signs).toHaveLength(3)
})

describe('marks', () => {
  test('intermediate responses carry "true", the last one "false"; it may be empty', async () => {
    const { items, marks } = await answer('await send(["a"]); await send([{ b: 1 }]); return [undefined]')
    expect(items).toEqual(['a', '{\n  "b": 1\n}', ''])
    expect(marks).toEqual(['true', 'true', 'false'])
  })

  test('status, content type and headers go with the first response only', async () => {
    const { responses } = await answer(`
      context.setResponseStatus(0, 202, 'Well'); context.setResponseContentType(0, 'text/event-stream')
      context.setResponseHeader(0, 'X-A', 'b')
      await send(['1']); context.setResponseStatus(0, 500); await send(['2']); return ['3']`)
    const head = { status: 202, reason: 'Well', contentType: 'text/event-stream', headers: { 'X-A': 'b' } }
    expect(responses[0]).toEqual({
      type: 'response',
      id,
      body: Buffer.from('1'),
      ts_stream_next: 'true',
      ...head,
    })
    expect(Object.keys(responses[1]!).sort()).toEqual(['body', 'id', 'ts_stream_next', 'type'])
    expect(Object.keys(responses[2]!).sort()).toEqual(['body', 'id', 'ts_stream_next', 'type'])
  })

  test('only requests that streamed get a stream; the others a whole answer', async () => {
    const ids = start('await send(["x", undefined, "z"]); return ["", "whole", undefined]', 3)
    const answers = await Promise.all(ids.map((one) => worker.answer(one)))
    expect(answers.map(({ marks }) => marks)).toEqual([['true', 'false'], [undefined], ['true', 'false']])
    expect(answers.map(({ items }) => items)).toEqual([['x', ''], ['whole'], ['z', '']])
  })

  test('ids may be a part of the batch, in any order, as a list or a record with holes', async () => {
    const ids = start(
      `const [a, b, c] = context.requestIds
       await send(['for c', 'for a'], [c, a]); await send(['lost', 'for b'], { 1: b }); await send([,,'c again'], { 2: c })
       return ['', '', '']`,
      3,
    )
    const answers = await Promise.all(ids.map((one) => worker.answer(one)))
    expect(answers.map(({ items }) => items)).toEqual([
      ['for a', ''],
      ['for b', ''],
      ['for c', 'c again', ''],
    ])
  })

  test('a handler that throws after three items: three items and a failure', async () => {
    const { items, error } = await answer(
      'for (const x of ["1", "2", "3"]) await send([x]); throw new Error("later")',
    )
    expect(items).toEqual(['1', '2', '3'])
    expect(error).toMatchObject({ code: 'HANDLER_FAILED', message: 'Prediction failed' })
  })
})

describe('order guard', () => {
  const sentence = async (call: string): Promise<string> => {
    const { items } = await answer(`return [await ${call}.then(() => 'sent', (e) => e.message)]`)
    return items[0]!
  }

  const form = "; call it as sendIntermediatePredictResponse([item], context.requestIds, '', 200, context)"
  const context = 'sendIntermediatePredictResponse: context must be the context of the current call of handle'

  test.each([
    ['send("text")', `sendIntermediatePredictResponse: ret must be a list with one item per request${form}`],
    ['send(["x"], ["other"])', 'sendIntermediatePredictResponse: the batch has no request "other"'],
    ['api.sendIntermediatePredictResponse(["x"], context.requestIds, "", 200, {})', `${context}${form}`],
    ['api.sendIntermediatePredictResponse(["x"])', `${context}${form}`],
    ['send(["x"], "id")', `sendIntermediatePredictResponse: requestIds must be context.requestIds${form}`],
    ['send([])', 'sent'],
    ['send([undefined])', 'sent'],
    ['send(["x"], {})', 'sent'],
  ])('%s: %s', async (call, message) => {
    expect(await sentence(call)).toBe(message)
  })

  test('nothing follows the final response; an unawaited late call harms nobody', async () => {
    await answer('shared.late = () => send(["late"]); await send(["a"]); return ["b"]')
    const first = id
    await answer(
      'shared.late(); setTimeout(shared.late); await new Promise((r) => setTimeout(r, 5)); return [""]',
    )
    const { items } = await answer('return [await shared.late().catch((e) => e.message)]')
    expect(items[0]).toBe(`sendIntermediatePredictResponse: request id-${first} has already ended`)
    expect(soFar(first)).toEqual(['a', 'b'])
  })
})

describe('code and message', () => {
  test('another 2xx is the status of an answer that has not begun', async () => {
    const { responses } = await answer(
      'await send(["a"], undefined, 206); await send(["b"], undefined, 201); return [""]',
    )
    expect(responses.map(({ status }) => status)).toEqual([206, undefined, undefined])
  })

  test('an error code fails the addressed requests with its message', async () => {
    const ids = start('await send(["x", undefined], undefined, 429, "slow down"); return ["a", "b"]', 2)
    const [first, second] = await Promise.all(ids.map((one) => worker.answer(one)))
    expect(first!.error).toMatchObject({ code: 'HANDLER_REJECTED', status: 429, message: 'slow down' })
    expect(second!.items).toEqual(['b'])
  })
})

describe('items that cannot be sent', () => {
  test.each([
    ['"x".repeat(1001)', 'RESPONSE_TOO_LARGE'],
    ['Symbol()', 'INVALID_OUTPUT'],
    ['new Error("own")', 'HANDLER_FAILED'],
    ['new api.PredictionException("mine", 400)', 'HANDLER_REJECTED'],
  ])('%s fails its own request with %s, and its signal aborts', async (item, code) => {
    const ids = start(
      `await send(['ok', 'ok']); await send([${item}, 'fine'])
       return ['never', String(context.requestSignal(0).aborted) + context.signal.aborted]`,
      2,
    )
    const [first, second] = await Promise.all(ids.map((one) => worker.answer(one)))
    expect(first!.items).toEqual(['ok'])
    expect(first!.error!.code).toBe(code)
    expect(second!.items).toEqual(['ok', 'fine', 'truefalse'])
  })

  test('when it was the only request, the call rejects with the reason', async () => {
    const { error } = await answer(
      `await send(['x'.repeat(1001)]).catch((e) => { shared.caught = e.code; throw e }); return ['']`,
    )
    expect(error!.code).toBe('RESPONSE_TOO_LARGE')
    expect((await answer('return [shared.caught]')).items).toEqual(['RESPONSE_TOO_LARGE'])
  })
})

describe('backpressure', () => {
  const hundred = 'x'.repeat(100)
  const cost = itemCost(hundred.length)

  test('an awaited send waits when the window is used up, and goes on with credit', async () => {
    const [one] = start(
      `for (let i = 0; i < 5; i++) { await send(['${hundred}']); context.logger.info('sent ' + i) } return ['']`,
      1,
      { window: cost * 2 - 1 },
    )
    await logged('sent 0')
    await worker.ping()
    expect(soFar(one!)).toHaveLength(2)
    credit(one!, 1)
    await worker.ping()
    expect(soFar(one!)).toHaveLength(2)
    credit(one!, 1)
    await logged('sent 1')
    await worker.ping()
    expect(soFar(one!)).toHaveLength(3)
    credit(one!, 10 * cost)
    expect((await worker.answer(one!)).items).toHaveLength(6)
  })

  test('an item larger than the window passes when there is any room', async () => {
    const { items } = await answer(`void send(['${'y'.repeat(1000)}']); return ['']`, { window: 1 })
    expect(items[0]).toHaveLength(1000)
  })

  test('a window of zero holds everything back until credit', async () => {
    const [one] = start(`void send(['a']); return ['b']`, 1, { window: 0 })
    await worker.ping()
    expect(soFar(one!)).toEqual([])
    credit(one!, 1)
    expect((await worker.answer(one!)).items).toEqual(['a', 'b'])
  })

  test('unawaited sends keep their order, and the final response waits behind them', async () => {
    const [one] = start(`for (let i = 0; i < 10; i++) void send([String(i)]); return ['end']`, 1, {
      window: 130,
    })
    await worker.ping()
    expect(soFar(one!)).toEqual(['0', '1'])
    for (let i = 0; i < 10; i++) credit(one!, 65)
    const { items, marks } = await worker.answer(one!)
    expect(items).toEqual(['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'end'])
    expect(marks.at(-1)).toBe('false')
  })

  test('the failure of a handler that threw waits behind them too', async () => {
    const [one] = start(`void send(['a']); void send(['b']); throw new Error('x')`, 1, { window: 1 })
    await worker.ping()
    expect(soFar(one!)).toEqual(['a'])
    credit(one!, 200)
    const { items, error } = await worker.answer(one!)
    expect(items).toEqual(['a', 'b'])
    expect(error!.code).toBe('HANDLER_FAILED')
  })

  test('a buffer may be used again after an unawaited send', async () => {
    const [one] = start(
      `const b = Buffer.from('1'); void send([b]); b[0]++; void send([b]); b[0]++; return ['']`,
      1,
      { window: 1 },
    )
    await worker.ping()
    credit(one!, 1000)
    expect((await worker.answer(one!)).items).toEqual(['1', '2', ''])
  })

  test('too much unawaited fails the request with SEND_OVERFLOW and rejects the call', async () => {
    const { items, error } = await answer(
      `let n = 0, failed
       while (failed === undefined && n < 1000) { send(['${hundred}']).catch((e) => { failed = e.code }); n++; await null; await null; await null }
       shared.overflow = [failed, n, context.signal.aborted]; return ['']`,
      { window: 1 },
    )
    expect(items).toHaveLength(1)
    expect(error!.code).toBe('SEND_OVERFLOW')
    const [failed, n, aborted] = JSON.parse((await answer('return [shared.overflow]')).items[0]!)
    expect([failed, aborted]).toEqual(['SEND_OVERFLOW', true])
    expect(n).toBeLessThan(2000 / cost + 4)
  })

  test('nobody needs to hear an overflow: an unawaited rejection does not end the worker', async () => {
    const { error } = await answer(`for (let i = 0; i < 100; i++) send(['${hundred}']); return ['']`, {
      window: 1,
    })
    expect(error!.code).toBe('SEND_OVERFLOW')
    await worker.ping()
  })

  test('a batch goes as fast as its slowest reader, and no further when that one leaves', async () => {
    const ids = start(
      `for (let i = 0; i < 3; i++) { await send(['a', 'b']); context.logger.info('pair ' + i) } return ['', '']`,
      2,
      { window: 1 },
    )
    credit(ids[0]!, 1000)
    await worker.ping()
    expect(soFar(ids[0]!)).toEqual(['a'])
    worker.send({ type: 'cancel', id: ids[1]!, reason: 'client left' })
    expect((await worker.answer(ids[0]!)).items).toEqual(['a', 'a', 'a', ''])
    const other = await worker.answer(ids[1]!)
    expect(other.items).toEqual(['b'])
    expect(other.error!.code).toBe('CANCELLED')
  })

  test('a reader that stands still does not slow others', async () => {
    const [one] = start(`await send(['x']); await send(['y']); return ['']`, 1, { window: 1 })
    const { items } = await answer('for (let i = 0; i < 100; i++) await send([i]); return [""]')
    expect(items).toHaveLength(101)
    worker.send({ type: 'cancel', id: one!, reason: 'timeout' })
    expect((await worker.answer(one!)).error!.code).toBe('CANCELLED')
  })

  test('credit for requests that have ended or never were is ignored', async () => {
    credit(id, 10)
    credit(1_000_000, 10)
    await worker.ping()
  })
})

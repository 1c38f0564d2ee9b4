import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import type { RequestOptions } from '../support/worker-process.ts'
import { type Answer, request, startWorker, type WorkerConnection } from '../support/worker-process.ts'
import { run, SCRIPTED } from './scripted.ts'

let worker: WorkerConnection
let id = 0
beforeAll(async () => {
  worker = await startWorker(SCRIPTED, {}, { maxResponseBytes: 1000 })
})
afterAll(async () => {
  expect(await worker.close()).toBe(0)
})

async function answer(code: string, body?: unknown, more?: RequestOptions): Promise<Answer> {
  worker.predict(run(++id, code, body, more))
  return worker.answer(id)
}

/** A batch whose first request contains the handler's code. */
async function batch(code: string, size: number): Promise<Answer[]> {
  const requests = Array.from({ length: size }, (_, i) => run(id + 1 + i, code, i))
  id += size
  worker.predict(...requests)
  return Promise.all(requests.map((one) => worker.answer(one.id)))
}

describe('inputs', () => {
  const show = `return [JSON.stringify(Object.entries(requests[0]).map(([name, value]) =>
    [name, Buffer.isBuffer(value) ? 'bytes:' + value : value]))]`
  const parts = async (
    ...list: [name: string, contentType: string | undefined, data: string][]
  ): Promise<unknown> => {
    const made = list.map(([name, contentType, data]) => ({
      name,
      contentType,
      data: Buffer.from(data, 'latin1'),
    }))
    const { items } = await answer(show, undefined, { parts: made })
    return JSON.parse(items[0]!)
  }

  test('JSON is parsed, text is a string, all else is a Buffer', async () => {
    expect(
      await parts(
        ['a', 'application/json', '{"x": [1]}'],
        ['b', 'text/plain', 'words'],
        ['c', 'image/png', 'png'],
        ['d', undefined, 'none'],
        ['e', 'Application/JSON', '1'],
      ),
    ).toEqual([
      ['a', { x: [1] }],
      ['b', 'words'],
      ['c', 'bytes:png'],
      ['d', 'bytes:none'],
      ['e', 1],
    ])
  })

  test('JSON that is none stays bytes, with a warning in the log', async () => {
    expect(await parts(['body', 'application/json', '{oops'])).toEqual([['body', 'bytes:{oops']])
    const log = await worker.next('log')
    expect(log).toMatchObject({
      level: 'warn',
      requestId: `id-${id}`,
      message: expect.stringContaining('"body"'),
    })
  })

  test('JSON that is not UTF-8 stays bytes, and the log has the place', async () => {
    expect(await parts(['body', 'application/json', '{"a":"\xe9"}'])).toEqual([
      ['body', 'bytes:{"a":"\ufffd"}'],
    ])
    const message = expect.stringContaining('Invalid UTF-8 at byte 6')
    expect(await worker.next('log')).toMatchObject({ message })
  })

  test('a number that JavaScript cannot hold is a bigint, and goes out with all digits', async () => {
    const body = '{"id":7615917337495251231,"high":1e309,"list":[9007199254740991,9007199254740992]}'
    const made = { parts: [{ name: 'body', contentType: 'application/json', data: Buffer.from(body) }] }
    const { items } = await answer(
      'const { body } = requests[0]; return [[typeof body.id, typeof body.high, ...body.list.map((n) => typeof n), String(body)].join()]',
      undefined,
      made,
    )
    const digits = body.replace('1e309', `1${'0'.repeat(309)}`)
    expect(items).toEqual([`bigint,bigint,number,bigint,${digits}`])
    const echoed = await answer('return [requests[0].body]', undefined, made)
    expect(echoed.items[0]!.replaceAll(/\s/g, '')).toBe(digits)
  })

  test('text that is no UTF-8 stays bytes', async () => {
    const { items } = await answer('return [requests[0].t.toString("hex")]', undefined, {
      parts: [{ name: 't', contentType: 'text/plain', data: Buffer.from('ff00', 'hex') }],
    })
    expect(items).toEqual(['ff00'])
    expect(await worker.next('log')).toMatchObject({ message: expect.stringContaining('not valid UTF-8') })
  })

  test('of parts with the same name the last one counts', async () => {
    expect(await parts(['x', 'text/plain', '1'], ['x', 'text/plain', '2'])).toEqual([['x', '2']])
  })

  test('a part called __proto__ is a name like any other and changes no prototype', async () => {
    const proto = { name: '__proto__', contentType: 'application/json', data: Buffer.from('{"evil": 1}') }
    const { items } = await answer(
      'return [[Object.keys(requests[0]), requests[0].evil ?? null, ({}).evil ?? null]]',
      undefined,
      { parts: [proto] },
    )
    expect(JSON.parse(items[0]!)).toEqual([['__proto__'], null, null])
  })
})

describe('outputs', () => {
  test.each([
    ['a string', '"grüße"', 'grüße'],
    ['a Buffer', 'Buffer.from("raw")', 'raw'],
    ['an ArrayBuffer', 'new Uint8Array([104, 105]).buffer', 'hi'],
    ['an object', '{ a: [1] }', '{\n  "a": [\n    1\n  ]\n}'],
    ['null', 'null', 'null'],
    ['a bigint', '[2n ** 60n, -1n, "1"]', '[\n  1152921504606846976,\n  -1,\n  "1"\n]'],
    ['undefined', 'undefined', ''],
  ])('%s goes out as TorchServe writes it', async (_what, expression, text) => {
    const { items, marks, responses } = await answer(`return [${expression}]`)
    expect(items).toEqual([text])
    expect(marks).toEqual([undefined])
    expect(responses[0]).toEqual({ type: 'response', id, body: Buffer.from(text) })
  })

  test.each(['() => 1', '(() => { const a = []; a.push(a); return a })()', 'Symbol()'])(
    'what has no JSON form is refused: %s',
    async (expression) => {
      const { error } = await answer(`return [${expression}]`)
      expect(error).toMatchObject({ code: 'INVALID_OUTPUT', message: 'Unsupported model output data type.' })
    },
  )

  test.each([
    ['return undefined', 'returned nothing; it must return an array with one item per request: [item]'],
    ['return "word"', "returned a string; it must return an array with one item per request: [ 'word' ]"],
    ['return "x".repeat(99)', 'returned a string; it must return an array with one item per request: [item]'],
    ['return { 0: "a" }', 'returned an object; it must return an array with one item per request: [item]'],
    ['return null', 'returned null; it must return an array with one item per request: [item]'],
    [
      'return (function* () { yield ["a"] })()',
      'returned an iterable that is not async; it must return an array with one item per request: [item]',
    ],
    [
      'return (async function* () { yield "word" })()',
      "yielded a string; it must yield an array with one item per request: [ 'word' ]",
    ],
  ])('an answer that is no list is refused, and the log says what it must be: %s', async (body, why) => {
    const { error } = await answer(body)
    expect(error).toMatchObject({
      ...{ code: 'INVALID_OUTPUT', message: 'Invalid model predict output' },
      detail: `The handler ${why}`,
    })
  })

  test.each(['[]', '["a", "b"]'])('a list of the wrong length is refused: %s', async (result) => {
    const { error } = await answer(`return ${result}`)
    expect(error).toMatchObject({ code: 'INVALID_OUTPUT', message: 'number of batch response mismatched' })
  })

  test('each request of a batch gets its own item', async () => {
    const answers = await batch('return requests.map(({ body }) => "item " + body)', 3)
    expect(answers.map(({ items }) => items[0])).toEqual(['item 0', 'item 1', 'item 2'])
  })

  test('an item that is an error, cannot be encoded or is too large fails its own request only', async () => {
    const answers = await batch(
      'return ["good", new Error("bad"), new api.PredictionException("busy", 429), Symbol(), "x".repeat(1001), "x".repeat(1000)]',
      6,
    )
    expect(answers.map(({ error, items }) => error?.code ?? items[0]!.length)).toEqual([
      4,
      'HANDLER_FAILED',
      'HANDLER_REJECTED',
      'INVALID_OUTPUT',
      'RESPONSE_TOO_LARGE',
      1000,
    ])
    expect(answers[4]!.error!.message).toContain('max_response_size (1000)')
  })
})

describe('errors', () => {
  test('a handler that throws fails its batch, with the stack as detail and not as message', async () => {
    const answers = await batch('throw new Error("secret", { cause: new Error("deeper") })', 2)
    for (const { error, responses } of answers) {
      expect(responses).toEqual([])
      expect(error).toMatchObject({ code: 'HANDLER_FAILED', message: 'Prediction failed' })
      expect(error!.detail).toMatch(/secret[^]*at [^]*deeper/)
    }
  })

  test('the detail of an error with properties has both of their braces, and no line of the worker', async () => {
    const { error } = await answer(
      'throw Object.assign(new Error("secret", { cause: Object.assign(new Error("deeper"), { code: 6 }) }), { code: 5 })',
    )
    const { detail = '' } = error!
    expect(detail).toMatch(/^Error: secret\n[^]+ \{\n {2}code: 5,\n {2}\[cause\]: Error: deeper\n/)
    expect(detail).toMatch(/\n {6}at .+ \{\n {4}code: 6\n {2}\}\n\}$/)
    expect(detail).not.toMatch(/\/dist\/(?:backend-worker|chunks)\//)
  })

  test.each(['undefined', '"text"', 'null', '{ get stack() { throw 1 } }'])(
    'throwing %s is a failure too',
    async (thrown) => {
      const { error } = await answer(`throw ${thrown}`)
      expect(error).toMatchObject({ code: 'HANDLER_FAILED', message: 'Prediction failed' })
    },
  )

  test.each([
    ['409', 409],
    ['undefined', 500],
    ['200', 500],
  ])('a PredictionException with code %s answers %i with its message', async (code, status) => {
    const { error } = await answer(
      `const e = new api.PredictionException("no luck"); if (${code} !== undefined) Object.assign(e, { code: ${code} }); throw e`,
    )
    if (code === '"x"') expect(error!.code).toBe('HANDLER_FAILED')
    else expect(error).toMatchObject({ code: 'HANDLER_REJECTED', message: 'no luck', status })
  })

  test.each([
    'new ArrayBuffer(2 ** 53 - 1)',
    '"x".repeat(2 ** 29)',
    'throw new Error("CUDA error: no kernel")',
  ])('what looks like lack of memory says so: %s', async (code) => {
    const { error } = await answer(`${code}; return [""]`)
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', message: 'Out of resources' })
  })
})

describe('status and headers', () => {
  test('what the handler sets goes with its request', async () => {
    const [first, second] = await batch(
      `context.setAllResponseStatus(201)
       context.setResponseStatus(1, 418, "Teapot")
       context.setResponseContentType(1, "text/x")
       context.setResponseHeader(1, "X-Tokens", 5)
       context.setResponseHeader(0, "Content-Type", "text/y")
       return ["a", "b"]`,
      2,
    )
    expect(first!.responses[0]).toMatchObject({ status: 201, contentType: 'text/y' })
    expect(first!.responses[0]!.headers).toBeUndefined()
    expect(second!.responses[0]).toMatchObject({
      status: 418,
      reason: 'Teapot',
      contentType: 'text/x',
      headers: { 'X-Tokens': '5' },
    })
  })

  test.each([
    'setResponseStatus(0, 100)',
    'setResponseStatus(0, 200.5)',
    'setResponseStatus(1, 200)',
    'setResponseStatus(0, 200, "a\\nb")',
    'setResponseHeader(0, "a b", "x")',
    'setResponseHeader(0, "x", "a\\r\\nb: c")',
    'setResponseHeader(0, "x", "y".repeat(10000))',
    'setResponseContentType(0, "\\u0000")',
    'requestHeaders(7)',
  ])('%s throws in the handler', async (call) => {
    const { items } = await answer(
      `try { context.${call} } catch (e) { return [e instanceof Error] } return ["no error"]`,
    )
    expect(items).toEqual(['true'])
  })
})

describe('context', () => {
  test('shows the model, the batch and the headers in any letter case', async () => {
    const headers = { 'X-Custom': 'yes', url_path: 'v1/x' }
    const { items } = await answer(
      `return [{
        name: context.modelName, version: context.modelVersion, manifest: context.manifest,
        config: context.modelConfig, properties: context.properties, ids: context.requestIds,
        header: [context.requestHeader(0, 'x-cUSTOM'), context.requestHeader(0, 'none') ?? null,
          context.requestHeader(0, 'constructor') ?? null, context.requestHeaders(0).url_path],
        deadline: context.requestDeadline(0), explain: context.explain,
      }]`,
      {},
      { headers, deadline: 1234.5 },
    )
    expect(JSON.parse(items[0]!)).toEqual({
      name: 'm',
      version: '1.0',
      manifest: { model: { modelName: 'm' } },
      config: { greeting: 'hello' },
      properties: {
        modelDir: expect.any(String),
        batchSize: 4,
        gpuId: -1,
        limitMaxImagePixels: true,
        device: 'cpu',
        rank: 0,
        localRank: 0,
        worldSize: 1,
        serverName: 'torchserve-ts',
        serverVersion: '9.9',
      },
      ids: [`id-${id}`],
      header: ['yes', null, null, 'v1/x'],
      deadline: 1234.5,
      explain: false,
    })
  })

  test('the logger sends its lines, with the request of the index', async () => {
    await answer(
      'context.logger.debug("one"); context.logger.error({ toString: () => "two" }, 0); return [""]',
    )
    expect(await worker.next('log')).toEqual({ type: 'log', level: 'debug', message: 'one' })
    expect(await worker.next('log')).toEqual({
      type: 'log',
      level: 'error',
      message: 'two',
      requestId: `id-${id}`,
    })
  })

  test('metrics go out with their units, the usual dimensions and the requests', async () => {
    await answer(
      `const m = context.metrics
       m.addCounter('Tokens', 3, { Kind: 'new' }); m.addTime('Think', 1.5); m.addTime('Think', 2, 's')
       m.addSize('Cache', 7, 'kB'); m.addPercent('Hits', 50); return ['']`,
    )
    const dimensions = { ModelName: 'm', Level: 'Model' }
    const common = { type: 'metric', requestIds: [`id-${id}`], dimensions }
    expect(await worker.next('metric')).toEqual({
      ...common,
      name: 'Tokens',
      kind: 'counter',
      unit: 'Count',
      values: [3],
      dimensions: { ...dimensions, Kind: 'new' },
    })
    expect(await worker.next('metric')).toMatchObject({ kind: 'gauge', unit: 'Milliseconds', values: [1.5] })
    expect(await worker.next('metric')).toMatchObject({ unit: 'Seconds', values: [2] })
    expect(await worker.next('metric')).toMatchObject({ name: 'Cache', unit: 'Kilobytes' })
    expect(await worker.next('metric')).toMatchObject({ name: 'Hits', unit: 'Percent', values: [50] })
  })

  test('a metric that cannot be is left out, and the prediction goes on', async () => {
    const { items } = await answer(
      `context.metrics.addCounter('Bad', -1); context.metrics.addTime('Bad', NaN); context.metrics.addSize('Bad', 1, 'TB')
       return ['fine']`,
    )
    expect(items).toEqual(['fine'])
    for (let i = 0; i < 3; i++) {
      expect(await worker.next('log')).toMatchObject({
        message: expect.stringContaining('Metric Bad is ignored'),
      })
    }
  })
})

describe('describe and explain', () => {
  test('describe answers with the metadata as JSON', async () => {
    worker.send({ type: 'predict', requests: [request(++id, {}, { method: 'describe' })] })
    const { responses, items } = await worker.answer(id)
    expect(responses[0]!.contentType).toBe('application/json')
    expect(JSON.parse(items[0]!)).toEqual({ model: 'm', explain: false })
  })

  test('a request to be explained goes to handle when the handler has no explain', async () => {
    const { items } = await answer('return [context.explain]', {}, { method: 'explain' })
    expect(items).toEqual(['true'])
  })
})

test('several batches run at once and are told apart by their ids', async () => {
  const wait =
    'await new Promise((resolve) => { shared[requests[0].body] = resolve }); return [requests[0].body]'
  worker.predict(run(++id, wait, 'first'))
  worker.predict(run(++id, wait, 'second'))
  await worker.ping()
  await answer('shared.second(); return [""]')
  expect((await worker.answer(id - 1)).items).toEqual(['second'])
  await answer('shared.first(); return [""]')
  expect((await worker.answer(id - 3)).items).toEqual(['first'])
})

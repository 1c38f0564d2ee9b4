import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import type { Context, Handler, HandlerRequest } from '../../backend-worker/index.ts'
import {
  runHandler,
  type RunOptions,
  type TestInput,
  type TestRequest,
} from '../../backend-worker/testing.ts'
import { ServeError } from '../../common/errors.ts'
import { inEnvelope } from '../../backend-worker/envelope.ts'
import { loadedHandler } from '../../backend-worker/loader.ts'

type Rows = unknown[]

/** Returns what it got: a list of rows instead of requests. */
const echo: Handler = { handle: (rows: Rows) => rows }

async function run(
  envelope: NonNullable<RunOptions['envelope']>,
  requests: readonly TestRequest[],
  handler = echo,
  method?: 'explain',
): Promise<unknown[]> {
  const { responses } = await runHandler(handler, requests, { envelope, method })
  return responses.map(({ body, error }) => error?.code ?? parsed(body.toString()))
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return text
  }
}

function tensor(data: TestInput[], shape = [data.length], datatype = 'INT64', name = 'x'): TestInput {
  return { name, shape, datatype, data }
}

/** Answers with the data of tensors. */
const echoData: Handler = { handle: (rows: Rows) => rows.map((row) => (row as { data: unknown }).data) }

test('body: data, else body', async () => {
  const requests: TestRequest[] = [{ parts: { data: 'a', body: 'b' } }, 'c', { parts: { body: [1, 2] } }]
  expect(await run('body', requests)).toEqual(['a', 'c', [1, 2]])
})

test('json: the instances of a batch in one call, with bytes, and each answer to its request', async () => {
  let calls = 0
  const handler: Handler = {
    handle: (rows: Rows) => {
      calls++
      return rows.map((row) => (Buffer.isBuffer(row) ? `bytes ${row.toString()}` : row))
    },
  }
  const b64 = { b64: Buffer.from('hello').toString('base64') }
  const requests = [{ instances: [1, b64] }, { instances: [] }, Buffer.from('{"instances": [{"x": 1}]}')]
  expect(await run('json', requests, handler)).toEqual([
    { predictions: [1, 'bytes hello'] },
    { predictions: [] },
    { predictions: [{ x: 1 }] },
  ])
  expect(calls).toBe(1)
  const field: Handler = { handle: (rows: Rows) => rows.map((row) => String((row as { p: Buffer }).p)) }
  expect(await run('json', [{ instances: [{ p: b64, n: 1 }] }], field)).toEqual([{ predictions: ['hello'] }])
})

test('kserve: predictions, or explanations by the method for it', async () => {
  const handler: Handler = { handle: (rows: Rows) => rows, explain: (rows: Rows) => rows.map(() => 'why') }
  expect(await run('kserve', [{ instances: ['a', 'b'] }, { instances: ['c'] }], handler)).toEqual([
    { predictions: ['a', 'b'] },
    { predictions: ['c'] },
  ])
  const explained = { instances: [1] }
  expect(await run('kserve', [explained], handler, 'explain')).toEqual([{ explanations: ['why'] }])
  expect(await run('kserve', [explained], echo, 'explain')).toEqual([{ explanations: [1] }])
})

test('kservev2: tensors in their shape, flat outputs under the names of the inputs', async () => {
  const seen: Rows = []
  const handler: Handler = {
    handle: (rows: Rows) => {
      seen.push(...rows)
      return rows.map((row) => (row as { data: unknown }).data)
    },
  }
  const requests: TestRequest[] = [
    { id: 'mine', inputs: [tensor([1, 2, 3, 4], [2, 2]), tensor(['text'], [1], 'BYTES', 'y')] },
    { inputs: [tensor([[1.5], [2]], [1, 2, 1], 'FP32')] },
  ]
  expect(await run('kservev2', requests, handler)).toEqual([
    {
      ...{ id: 'mine', model_name: 'test', model_version: '1.0' },
      outputs: [
        { name: 'x', datatype: 'INT64', data: [1, 2, 3, 4], shape: [4] },
        { name: 'y', datatype: 'BYTES', data: ['text'], shape: [1] },
      ],
    },
    {
      ...{ id: 'request-1', model_name: 'test', model_version: '1.0' },
      outputs: [{ name: 'x', datatype: 'FP64', data: [1.5, 2], shape: [2] }],
    },
  ])
  expect(seen.map((row) => (row as { data: unknown }).data)).toEqual([
    [
      [1, 2],
      [3, 4],
    ],
    'text',
    [[[1.5], [2]]],
  ])
})

test('an envelope is around handle and explain; other methods, and handlers without handle, have none', () => {
  const predict = () => ({ outputs: [] })
  const chatCompletions = () => ({ choices: [] }) as never
  const both = loadedHandler({ ...echo, explain: () => [], predict, chatCompletions })
  const made = inEnvelope(both, 'kservev2')
  expect(made.methods).toEqual(['handle', 'predict', 'chatCompletions'])
  expect(made.native).toBe(both.native)
  expect([made.handle === both.handle, made.explain === both.explain]).toEqual([false, false])
  for (const other of [loadedHandler({ predict }), loadedHandler({ chatCompletions })])
    expect(inEnvelope(other, 'kservev2')).toBe(other)
})

test.each<[unknown, unknown[], number[]]>([
  [[-1], ['aW1hZ2U='], [1]],
  [-1, ['a', 'b'], [2]],
  [4, [1, 2, 3, 4], [4]],
  [
    [2, -1],
    [1, 2, 3, 4],
    [2, 2],
  ],
])('kservev2: the shape %j of %j is %j', async (shape, data, resolved) => {
  const handler: Handler = { handle: (rows: Rows) => rows.map((row) => (row as { shape: unknown }).shape) }
  const datatype = typeof data[0] === 'string' ? 'BYTES' : 'INT64'
  const [answer] = await run(
    'kservev2',
    [{ inputs: [{ name: 'x', shape, datatype, data }] } as TestRequest],
    handler,
  )
  expect(answer).toMatchObject({ outputs: [{ data: resolved }] })
})

test.each([
  [new Float32Array([0.5]), 'FP32', [0.5]],
  [[new Int32Array([1]), new Int32Array([2])], 'INT32', [1, 2]],
  [new BigInt64Array([3n]), 'INT64', [3]],
  [[2n ** 60n, 1], 'INT64', [2 ** 60, 1]],
  [Buffer.from([7]), 'UINT8', [7]],
  [[true, [false]], 'BOOL', [true, false]],
  ['text', 'BYTES', ['text']],
  [{ label: 'cat' }, 'BYTES', [{ label: 'cat' }]],
])('kservev2 makes of %p an output of %s', async (output, datatype, data) => {
  const [answer] = await run('kservev2', [{ inputs: [tensor([1])] }], { handle: () => [output] })
  const outputs = [{ name: 'x', datatype, data, shape: [data.length] }]
  expect(answer).toMatchObject({ outputs })
})

test('kservev2 keeps every tensor in its order', async () => {
  const dimension = fc.integer({ min: 0, max: 4 })
  const shapes = fc.array(dimension, { maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(shapes, async (shape) => {
      const data = Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => i)
      const [answer] = await run('kservev2', [{ inputs: [tensor(data, shape)] }], echoData)
      expect(answer).toMatchObject({ outputs: [{ data }] })
    }),
  )
})

test.each([
  ['json', 'no JSON'],
  ['kserve', Buffer.from('{"instances":["\xe9"]}', 'latin1')],
  ['json', []],
  ['kserve', { instances: 1 }],
  ['kserve', 5],
  ['kservev2', { inputs: {} }],
  ['kservev2', { inputs: [1] }],
  ['kservev2', { inputs: [{ shape: [1], datatype: 'INT64', data: [1] }] }],
  ['kservev2', { inputs: [tensor([1, 2], [3])] }],
  ['kservev2', { inputs: [tensor([1, 2], [-1, -1])] }],
  ['kservev2', { inputs: [tensor([], [1e9, 0.5])] }],
  [
    'kservev2',
    {
      inputs: [
        tensor(
          [1],
          Array.from({ length: 100_000 }, () => 1),
        ),
      ],
    },
  ],
] as const)('%s: %p fails alone', async (envelope, bad) => {
  const good: TestRequest = envelope === 'kservev2' ? { inputs: [tensor([1])] } : { instances: [1] }
  const handler = envelope === 'kservev2' ? echoData : echo
  const [first, second] = await run(envelope, [good, bad], handler)
  expect(first).toMatchObject(envelope === 'kservev2' ? { outputs: [{ data: [1] }] } : { predictions: [1] })
  expect(second).toBe('INVALID_ARGUMENT')
  expect(await run(envelope, [bad as TestRequest])).toEqual(['INVALID_ARGUMENT'])
})

test('no tensor without elements makes a list of many', async () => {
  const [answer] = await run('kservev2', [{ inputs: [tensor([], [1_000_000_000, 0])] }], echoData)
  expect(answer).toMatchObject({ outputs: [{ data: [], shape: [0] }] })
})

test('errors and lists of the wrong length fail as they do without an envelope', async () => {
  const requests = [{ instances: [1, 2] }, { instances: [3] }]
  const failing: Handler = { handle: (rows: Rows) => rows.map((row) => (row === 2 ? new Error('two') : row)) }
  expect(await run('json', requests, failing)).toEqual(['HANDLER_FAILED', { predictions: [3] }])
  expect(await run('json', requests, { handle: () => [1] })).toEqual(['INVALID_OUTPUT', 'INVALID_OUTPUT'])
  expect(await run('json', [requests[0]!], { handle: () => [7] })).toEqual([{ predictions: [7] }])
  expect(await run('json', [requests[0]!], { handle: () => 7 as never })).toEqual(['INVALID_OUTPUT'])
})

test('what is streamed goes out as it is; a request that was refused is refused', async () => {
  async function* handle(_rows: HandlerRequest[], context: Context): AsyncGenerator<string[], string[]> {
    await Promise.resolve()
    yield context.requestIds.map((id) => `${id} `)
    return context.requestIds.map(() => 'end')
  }
  const { responses } = await runHandler({ handle }, [{ instances: [1] }, 'no'], { envelope: 'json' })
  expect(responses.map(({ items, error }) => error?.code ?? items)).toEqual([
    ['request-0 ', 'end'],
    'INVALID_ARGUMENT',
  ])
})

test('hooks keep their handler, and an unknown envelope is refused', async () => {
  class Counting implements Handler {
    #calls = 0
    initialize(): void {
      this.#calls += 10
    }
    handle(): unknown[] {
      return [++this.#calls]
    }
    shutdown(): void {
      this.#calls = 0
    }
  }
  expect(await run('body', ['x'], new Counting())).toEqual([11])
  expect(() => inEnvelope(loadedHandler(echo), 'toString')).toThrow(ServeError)
})

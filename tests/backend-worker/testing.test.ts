import { describe, expect, test } from '@jest/globals'
import {
  BaseHandler,
  type Context,
  type HandlerRequest,
  type InferenceRequest,
  type InferenceResponse,
  PredictionException,
  sendIntermediatePredictResponse,
  StringCodec,
} from '../../backend-worker/index.ts'
import {
  type RunOptions,
  runHandler,
  type TestHandler,
  type TestRequest,
} from '../../backend-worker/testing.ts'

class Countdown extends BaseHandler {
  override async handle(_requests: HandlerRequest[], context: Context): Promise<unknown[]> {
    for (const word of ['three', 'two', 'one'])
      await sendIntermediatePredictResponse([word], context.requestIds, 'Intermediate', 200, context)
    return ['lift-off']
  }
}

test('a class runs as in a worker: items, marks, status', async () => {
  const { responses } = await runHandler(Countdown, ['go'])
  expect(responses).toEqual([
    expect.objectContaining({
      items: ['three', 'two', 'one', 'lift-off'],
      status: 200,
      streamed: true,
      error: undefined,
    }),
  ])
})

test('the hooks of BaseHandler run in their order', async () => {
  class Hooks extends BaseHandler {
    override initialize(context: Context): void {
      context.logger.info('initialized')
    }
    override inference(input: unknown): unknown {
      return (input as number[]).map((n) => n + 1)
    }
  }
  const { responses, logs } = await runHandler(new Hooks(), [1, { parts: { data: 2 } }])
  expect(responses.map(({ body }) => body.toString())).toEqual(['2', '3'])
  expect(logs.map(({ message }) => message)).toEqual(['initialized'])
})

test('functions, generators, headers, config and errors', async () => {
  const { responses, metrics } = await runHandler(
    async function* (requests: HandlerRequest[], context: Context) {
      yield [requests[0]!['body'], context.requestHeader(0, 'x-mood')]
      context.metrics.addCounter('Seen', 1)
      if (context.modelConfig['strict'] === true) throw new PredictionException('strict', 422)
    },
    [{ parts: { body: 'text' }, headers: { 'X-Mood': 'fine' } }, Buffer.from('b')],
    { modelConfig: { strict: true } },
  )
  expect(responses.map(({ items, error }) => [items, error?.code, error?.status])).toEqual([
    [['text'], 'HANDLER_REJECTED', 422],
    [['fine'], 'HANDLER_REJECTED', 422],
  ])
  expect(metrics).toHaveLength(1)
})

test('a slow reader holds the handler back', async () => {
  let inHand = 0
  let most = 0
  const { responses } = await runHandler(
    async (_requests, context) => {
      for (let i = 0; i < 20; i++) {
        most = Math.max(most, ++inHand)
        await sendIntermediatePredictResponse(['x'], context.requestIds, '', 200, context)
      }
      return ['']
    },
    [null],
    {
      window: 130,
      onItem: async () => {
        await new Promise(setImmediate)
        inHand--
      },
    },
  )
  expect(responses[0]!.items).toHaveLength(20)
  expect(most).toBeLessThanOrEqual(3)
})

test('an aborted run is a cancelled one', async () => {
  const controller = new AbortController()
  const { responses } = await runHandler(
    async (_requests, context) => {
      for (;;) await sendIntermediatePredictResponse(['x'], context.requestIds, '', 200, context)
    },
    [null],
    { signal: controller.signal, window: 65, onItem: () => controller.abort() },
  )
  expect(responses[0]!.error?.code).toBe('CANCELLED')
})

test('describe, ranks and what is no handler', async () => {
  const handler = { handle: () => ['x'], describe: () => ({ a: 1 }) }
  const described = await runHandler(handler, [null], { method: 'describe' })
  expect(JSON.parse(described.responses[0]!.body.toString())).toEqual({ a: 1 })
  const silent = await runHandler(Countdown, [null], { rank: 1, worldSize: 2 })
  expect(silent.responses[0]).toMatchObject({ status: undefined, items: [], error: undefined })
  await expect(runHandler({} as never, [])).rejects.toMatchObject({
    code: 'INVALID_MODEL',
    message: expect.stringMatching(/^handler must be a class, .*, found \{\}$/),
  })
  // What a CommonJS module gets when it imports a handler that is an ES module.
  const { responses } = await runHandler({ default: handler } as never, [null])
  expect(responses[0]!.items).toEqual(['x'])
})

test('a handler that only speaks the OpenAI API says what it takes to who asks for something else', async () => {
  class Parrot {
    async *chatCompletions() {
      yield { choices: [{ index: 0, delta: { content: 'hi' } }] }
    }
    embeddings() {
      return { embeddings: [[1]] }
    }
  }
  const { responses } = await runHandler(Parrot, ['a prompt', { prompt: 'x' }, { messages: [] }])
  const refused = { code: 'HANDLER_REJECTED', status: 400 }
  const message = 'This model takes a JSON object with messages or input'
  expect(responses.map(({ error, items }) => error ?? items)).toMatchObject([
    { ...refused, message },
    { ...refused, message },
    ['hi'],
  ])
})

test('after the text, one JSON item has the joined tool calls, other fields and further choices', async () => {
  const call = (text: string, more = {}) => ({
    tool_calls: [{ index: 0, ...more, function: { arguments: text } }],
  })
  const chunk = (delta: object, index = 0): { choices: object[] } => ({ choices: [{ index, delta }] })
  class Planner {
    async *chatCompletions() {
      yield chunk({ role: 'assistant', content: 'Let me ', reasoning: 'It ' })
      yield { choices: [...chunk({ content: 'see' }).choices, ...chunk({ content: 'or ' }, 1).choices] }
      yield chunk(call('{"at":', { id: 'c1', type: 'function' }))
      yield chunk({ ...call('1}'), reasoning: 'rains' })
      yield chunk({ content: 'not' }, 1)
    }
    async *completions() {
      yield { choices: [{ index: 0, text: 'one' }] }
      yield { choices: [{ index: 1, text: 'two' }] }
    }
  }
  const { responses } = await runHandler(Planner as never, [{ messages: [] }, { prompt: '' }])
  const [chat, text] = responses.map(({ items }) => [
    ...items.slice(0, -1),
    JSON.parse(items.at(-1)!) as object,
  ])
  expect(chat).toEqual([
    'Let me ',
    'see',
    {
      reasoning: 'It rains',
      tool_calls: [{ id: 'c1', type: 'function', function: { name: '', arguments: '{"at":1}' } }],
      choices: [
        expect.objectContaining({ index: 1, message: expect.objectContaining({ content: 'or not' }) }),
      ],
    },
  ])
  expect(text).toEqual(['one', { choices: [expect.objectContaining({ index: 1, text: 'two' })] }])
})

test('a handler of tensors is asked with parts', async () => {
  class Story {
    async *predictStream(payloads: AsyncIterable<InferenceRequest>): AsyncIterable<InferenceResponse> {
      for await (const { inputs } of payloads)
        for (const word of StringCodec.decodeInput(inputs[0]!)[0]!.split(' '))
          yield { outputs: [StringCodec.encodeOutput('output', [word])] }
    }
  }
  const { responses } = await runHandler(Story, ['one two'])
  expect(responses[0]!.items).toEqual(['one', 'two'])
})

describe('half a character at the end of an item', () => {
  const SMILE = '\u{1f600}'
  const [HIGH, LOW] = [SMILE[0]!, SMILE[1]!]
  const items = async (handler: TestHandler, request: TestRequest, options?: RunOptions) =>
    (await runHandler(handler, [request], options)).responses[0]!.items

  test('waits for the next one, which is empty if it has nothing else; at the end it is one U+FFFD', async () => {
    const yields = (...parts: unknown[]) =>
      async function* () {
        for (const part of parts) yield await Promise.resolve([part])
      } as never
    expect(await items(yields(HIGH, LOW), null)).toEqual(['', SMILE])
    expect(await items(yields(`a${HIGH}`, `${LOW}b${HIGH}`, `${LOW}${HIGH}`), null)).toEqual([
      'a',
      `${SMILE}b`,
      SMILE,
      '\ufffd',
    ])
    expect(await items(yields(HIGH, 'x', LOW), null)).toEqual(['', '\ufffdx', '\ufffd'])
    expect(await items(yields(HIGH, { a: 1 }, Buffer.from('b')), null)).toEqual([
      '',
      '\ufffd',
      '{\n  "a": 1\n}',
      'b',
    ])
    expect(await items(() => [`a${HIGH}`], null)).toEqual(['a\ufffd'])
  })

  test('waits in the steps of continuous batching, for its own request', async () => {
    const turns = [
      [HIGH, 'x'],
      [LOW, HIGH],
      ['', ''],
    ]
    let turn = 0
    const handle: TestHandler = (requests, context) => {
      const made = requests.map((_, i) => turns[turn]![i]!)
      turn += 1
      for (const i of made.keys()) context.setStreamNext(i, turn < turns.length)
      return made
    }
    const { responses } = await runHandler(handle, ['', ''], { continuousBatching: true })
    expect(responses.map((each) => each.items)).toEqual([
      ['', SMILE],
      ['x', '', '\ufffd'],
    ])
  })

  test('waits for the same element of the same output in a stream of tensors', async () => {
    class Texts {
      async *predictStream(): AsyncIterable<InferenceResponse> {
        for (const [a, b] of [
          [HIGH, 'x'],
          [`${LOW}y`, HIGH],
        ] as const)
          yield await Promise.resolve({
            outputs: [StringCodec.encodeOutput('a', [a, b]), StringCodec.encodeOutput('b', ['z'])],
          })
      }
    }
    const data = (await items(Texts as never, '')).map((item) =>
      (JSON.parse(item) as { outputs: { data: string[] }[] }).outputs.map((output) => output.data),
    )
    expect(data).toEqual([
      [['', 'x'], ['z']],
      [[`${SMILE}y`, ''], ['z']],
      [['', '\ufffd'], ['']],
    ])
  })

  test('is not taken from what predict answers to one of several messages', async () => {
    const predict = () => ({ outputs: [StringCodec.encodeOutput('a', [`a${HIGH}`])] })
    expect(await items({ predict } as never, '')).toEqual(['a\ufffd'])
  })
})

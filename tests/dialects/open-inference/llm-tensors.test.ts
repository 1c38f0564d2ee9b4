import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import { messagesOf } from '../../../frontend/dialects/open-inference/llm-messages.ts'
import { TextTensors } from '../../../frontend/dialects/open-inference/text-tensors.ts'
import { ServeError } from '../../../common/errors.ts'
import type { ChatMessage, ContentPart } from '../../../common/openai/types.ts'
import { joinElements } from '../../../common/tensors/bytes.ts'
import { ask, startRig, type Rig } from '../../support/http/rig.ts'

type Json = Record<string, unknown>

const bytes = (name: string, data: string[], shape = [data.length]) => ({
  name,
  shape,
  datatype: 'BYTES',
  data,
})
const HI = [bytes('role', ['user']), bytes('content', ['Hi']), bytes('type', ['text'])]

const post = (rig: Rig, path: string, body: object) =>
  ask(rig, path, { method: 'POST', body: JSON.stringify(body) })

/**
 * Asks a model whose handler has OpenAI API methods and returns `answers`. Resolves with the handler's
 * request and the client's response.
 */
async function asked(path: string, body: object, ...answers: object[]) {
  const rig = await startRig(createInferenceApp)
  const sent = post(rig, `/v2/models/native/${path}`, body)
  const job = await Promise.race([rig.models.nextJob(), sent.then(() => undefined)])
  if (job === undefined) return { answer: await sent }
  const { method, parts } = job.request
  const request = JSON.parse(Buffer.from(parts[0]!.data).toString()) as Json
  rig.models.start(job)
  const json = answers.map((each) => Buffer.from(JSON.stringify(each)))
  if (path.endsWith('_stream')) {
    for (const item of json) job.respond({ status: 200, headers: {}, body: item, more: true })
    job.respond({ status: 200, headers: {}, body: Buffer.alloc(0), more: false })
  } else job.respond({ status: 200, headers: {}, body: json[0]! })
  return { method, request, answer: await sent }
}

/** Outputs by their names. */
const outputs = (value: unknown): Record<string, { shape: number[]; data: unknown[]; parameters: Json }> =>
  Object.fromEntries(
    (value as { outputs: { name: string }[] }).outputs.map((output) => [output.name, output]),
  ) as never

describe('role, content and type', () => {
  const whole = {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Ho' }, finish_reason: 'stop' }],
  }

  test.each([
    ['[n]', HI],
    ['[n, 1]', HI.map((input) => ({ ...input, shape: [1, 1] }))],
  ])(
    'of shape %s are a chat; its answer is tensors, with the whole JSON beside them',
    async (_shape, inputs) => {
      const parameters = {
        llm_parameters: { temperature: 0.5, stream: true, model: 'other' },
        kwargs: { n: 1 },
      }
      const { method, request, answer } = await asked('infer', { id: 'x', inputs, parameters }, whole)
      expect(method).toBe('chatCompletions')
      expect(request).toEqual({
        model: 'native',
        messages: [{ role: 'user', content: 'Hi' }],
        temperature: 0.5,
        n: 1,
        stream: false,
      })
      expect(answer.json()).toMatchObject({ id: 'x', model_name: 'native' })
      const said = outputs(answer.json())
      const str = { content_type: 'str' }
      expect(said).toMatchObject({
        role: { shape: [1, 1], data: ['assistant'], parameters: str },
        content: { shape: [1, 1], data: ['Ho'], parameters: str },
        type: { shape: [1, 1], data: ['text'], parameters: str },
        output_all: { shape: [1, 1], parameters: str },
      })
      expect(JSON.parse(said['output_all']!.data[0] as string)).toEqual(whole)
    },
  )

  test('stream as deltas, each with its chunk; nothing but data lines, the same id in all', async () => {
    const chunk = (delta: object, finish: string | null = null) => ({
      choices: [{ index: 0, delta, finish_reason: finish }],
    })
    const chunks = [
      chunk({ role: 'assistant', content: '' }),
      chunk({ content: 'Ho' }),
      chunk({}, 'stop'),
      { choices: [], usage: {} },
    ]
    const { request, answer } = await asked('infer_stream', { inputs: HI }, ...chunks)
    expect(request).toMatchObject({ stream: true })
    const events = answer.text.split('\n\n')
    expect(events.pop()).toBe('')
    const values = events.map((event) => {
      expect(event).toMatch(/^data: [^\n]*$/)
      return JSON.parse(event.slice(6)) as Json
    })
    expect(new Set(values.map(({ id }) => id)).size).toBe(1)
    expect(typeof values[0]!['id']).toBe('string')
    const said = values.map(outputs)
    expect(said.map(({ content }) => content!.data)).toEqual([[''], ['Ho'], [''], ['']])
    expect(said.map(({ role }) => role!.data[0])).toEqual(Array(4).fill('assistant'))
    expect(said.map(({ output_all: all }) => JSON.parse(all!.data[0] as string) as unknown)).toEqual(chunks)
  })

  test('with tools: the request has them, the answer its calls as requests have them', async () => {
    const tool = { type: 'function', function: { name: 'add', parameters: { type: 'object' } } }
    const call = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":1}' } }
    const inputs = [
      bytes('role', ['user', 'assistant', 'tool']),
      bytes('content', ['["Add"]', '[""]', '["2"]']),
      bytes('type', ['["text"]', '["text"]', '["text"]']),
      bytes('tool_calls', ['', JSON.stringify([JSON.stringify(call)]), '']),
      bytes('tool_call_id', ['', '', 'call_1']),
      bytes('tools', [JSON.stringify(tool)]),
      bytes('tool_choice', ['{"type":"function","function":{"name":"add"}}']),
      bytes('parallel_tool_calls', ['False']),
    ]
    const message = { role: 'assistant', content: null, tool_calls: [call] }
    const { request, answer } = await asked('infer', { inputs }, { choices: [{ index: 0, message }] })
    expect(request).toEqual({
      model: 'native',
      stream: false,
      messages: [
        { role: 'user', content: 'Add' },
        { role: 'assistant', content: null, tool_calls: [call] },
        { role: 'tool', content: '2', tool_call_id: 'call_1' },
      ],
      tools: [tool],
      tool_choice: { type: 'function', function: { name: 'add' } },
      parallel_tool_calls: false,
    })
    const said = outputs(answer.json())
    expect(said['content']!.data).toEqual([''])
    expect(said['tool_calls']!.data).toEqual([JSON.stringify([JSON.stringify(call)])])
  })

  test('of one message with several entries are its parts; those of images hold JSON or a URL', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:1', detail: 'low' } }
    const inputs = [
      bytes('role', ['user']),
      bytes('content', ['What is it?', JSON.stringify(image), JSON.stringify(image.image_url), 'http://x/y']),
      bytes('type', ['text', 'image_url', 'image_url', 'image_url']),
    ]
    const { request } = await asked('infer', { inputs }, whole)
    expect(request).toMatchObject({
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            image,
            image,
            { type: 'image_url', image_url: { url: 'http://x/y' } },
          ],
        },
      ],
    })
  })

  test('have a row for each choice', async () => {
    const choices = ['a', 'b'].map((content, index) => ({ index, message: { role: 'assistant', content } }))
    const { answer } = await asked('infer', { inputs: HI, parameters: { n: 2 } }, { choices })
    expect(outputs(answer.json())).toMatchObject({
      content: { shape: [2, 1], data: ['a', 'b'] },
      output_all: { shape: [1, 1] },
    })
  })

  test('outputs that the client names are all that it gets', async () => {
    const { answer } = await asked('infer', { inputs: HI, outputs: [{ name: 'content' }] }, whole)
    expect(Object.keys(outputs(answer.json()))).toEqual(['content'])
    const none = await asked('infer', { inputs: HI, outputs: [{ name: 'x' }] }, whole)
    expect(none.answer.status).toBe(422)
  })

  test.each<[string, object]>([
    ['no message', { inputs: [bytes('role', []), bytes('content', [])] }],
    ['a role without content', { inputs: [bytes('role', ['user'])] }],
    ['content without role', { inputs: [bytes('content', ['x'])] }],
    ['a role too many', { inputs: [bytes('role', ['user', 'user']), bytes('content', ['x'])] }],
    [
      'fewer types than content',
      { inputs: [bytes('role', ['user']), bytes('content', ['x', 'y']), bytes('type', ['text'])] },
    ],
    [
      'parts that are no list',
      {
        inputs: [
          bytes('role', ['user', 'user']),
          bytes('content', ['x', 'y']),
          bytes('type', ['["text"]', '["text"]']),
        ],
      },
    ],
    [
      'a part that is no JSON',
      { inputs: [bytes('role', ['user']), bytes('content', ['x']), bytes('type', ['file'])] },
    ],
    ['tool calls that are none', { inputs: [...HI, bytes('tool_calls', ['{}'])] }],
    ['a tool that is no JSON', { inputs: [...HI, bytes('tools', ['x'])] }],
    ['numbers as content', { inputs: [HI[0], { name: 'content', shape: [1], datatype: 'INT8', data: [1] }] }],
    ['a field out of range', { inputs: HI, parameters: { llm_parameters: { temperature: 7 } } }],
    ['parameters that are no object', { inputs: HI, parameters: { kwargs: 'x' } }],
  ])('that cannot be read are 422, not the 400 that makes Seldon try again: %s', async (_what, body) => {
    const { request, answer } = await asked('infer_stream', body, whole)
    expect([answer.status, request]).toEqual([422, undefined])
    expect(answer.json()).toEqual({ error: expect.any(String) })
  })

  test('what the handler refuses with 400 is 422 here too', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) =>
      setImmediate(() => job.fail(new ServeError('HANDLER_REJECTED', 'Too long', { status: 400 })))
    const answer = await post(rig, '/v2/models/native/infer', { inputs: HI })
    expect([answer.status, answer.json()]).toEqual([422, { error: 'Too long' }])
  })

  test.each([
    ['a whole text', 'infer', 'Ho'],
    ['a cut JSON text', 'infer', '{"choices":['],
    ['a JSON list', 'infer', '[]'],
    ['a text in a stream', 'infer_stream', 'Ho'],
  ])('an answer of the handler that is no JSON object is its error: %s', async (_what, path, text) => {
    const rig = await startRig(createInferenceApp)
    const body = Buffer.from(text)
    rig.models.onJob = (job) =>
      setImmediate(() => {
        rig.models.start(job)
        job.respond({ status: 200, headers: {}, body, more: path === 'infer_stream' })
      })
    const answer = await post(rig, `/v2/models/native/${path}`, { inputs: HI })
    expect([answer.status, answer.json()]).toEqual([
      500,
      { error: 'The response of the model must be a JSON object' },
    ])
  })
})

describe('other tensors of language models', () => {
  test('prompt is a completion, and so is the text_input of the generate extension', async () => {
    const whole = { object: 'text_completion', choices: [{ index: 0, text: 'Ho' }] }
    const inputs = [bytes('prompt', ['a', 'b'])]
    const { method, request, answer } = await asked('infer', { inputs }, whole)
    expect([method, request]).toEqual(['completions', { model: 'native', prompt: ['a', 'b'], stream: false }])
    expect(outputs(answer.json())['content']!.data).toEqual(['Ho'])
    const body = { text_input: 'a', parameters: { max_tokens: 3, stop: ['x'], unknown: 1 } }
    const generated = await asked('generate', body, whole)
    expect(generated.request).toEqual({
      model: 'native',
      prompt: 'a',
      max_tokens: 3,
      stop: ['x'],
      stream: false,
    })
    expect(generated.answer.json()).toMatchObject({ model_name: 'native', text_output: 'Ho' })
  })

  test('input is for embeddings: numbers, a row for each', async () => {
    const data = [
      [1, 2.5],
      [3, -4],
    ].map((embedding, index) => ({ object: 'embedding', index, embedding }))
    const body = {
      inputs: [bytes('input', ['a', 'b'])],
      parameters: { embedding_parameters: { dimensions: 2 } },
    }
    const { method, request, answer } = await asked('infer', body, { object: 'list', data })
    expect([method, request]).toEqual([
      'embeddings',
      { model: 'native', input: ['a', 'b'], dimensions: 2, encoding_format: 'float' },
    ])
    expect((answer.json() as Json)['outputs']).toEqual([
      {
        name: 'embedding',
        datatype: 'FP64',
        shape: [2, 2],
        parameters: { content_type: 'np' },
        data: [1, 2.5, 3, -4],
      },
    ])
    const uneven = await asked('infer', body, { data: [{ embedding: [1] }, { embedding: [1, 2] }] })
    expect(uneven.answer.status).toBe(500)
  })

  test('others come as parts, and so do all to a handler that speaks no OpenAI', async () => {
    const rig = await startRig(createInferenceApp)
    for (const [model, inputs] of [
      ['native', [bytes('data', ['x'])]],
      ['m', HI],
    ] as const) {
      const sent = post(rig, `/v2/models/${model}/infer_stream`, { inputs })
      const job = await rig.models.nextJob()
      expect(job.request.parts.map(({ name }) => name)).toEqual(
        model === 'm' ? ['role', 'content', 'type'] : ['data'],
      )
      job.respond({ status: 200, headers: {}, body: Buffer.from('y') })
      await sent
    }
  })

  test('are a chat to a handler in an envelope of KServe, which is for its handle', async () => {
    const rig = await startRig(createInferenceApp)
    const status = rig.models.status.bind(rig.models)
    rig.models.methods = ['handle', 'chatCompletions']
    rig.models.status = (name, version) => ({ ...status(name, version), envelope: 'kservev2' })
    const methods: unknown[] = []
    for (const inputs of [HI, [bytes('data', ['a'])]]) {
      const sent = post(rig, '/v2/models/m/infer', { inputs })
      const job = await rig.models.nextJob()
      methods.push([job.request.method, job.request.parts.map(({ name }) => name)])
      job.fail(new ServeError('HANDLER_FAILED', 'x'))
      await sent
    }
    expect(methods).toEqual([
      ['chatCompletions', ['body']],
      ['handle', ['body']],
    ])
  })

  test('a handler that takes tensors itself gets these too', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.methods = ['predict', 'chatCompletions']
    void post(rig, '/v2/models/m/infer', { inputs: HI }).catch(() => undefined)
    const job = await rig.models.nextJob()
    expect(job.request.method).toBe('predict')
    job.fail(new ServeError('HANDLER_FAILED', 'x'))
  })
})

/** As Seldon's agent writes them. */
function tensorsOf(messages: readonly ChatMessage[]): TextTensors {
  const parts = messages.map(({ content }) =>
    typeof content === 'string' ? [{ type: 'text', text: content }] : (content ?? []),
  )
  const entryOf = ({ type, text, ...more }: ContentPart) =>
    type === 'text' ? text! : JSON.stringify({ type, ...more })
  const [only] = parts
  const single = messages.length === 1
  const columns = {
    role: messages.map(({ role }) => role),
    content: single ? only!.map(entryOf) : parts.map((list) => JSON.stringify(list.map(entryOf))),
    type: single
      ? only!.map(({ type }) => type)
      : parts.map((list) => JSON.stringify(list.map(({ type }) => type))),
    tool_calls: messages.map(({ tool_calls: calls }) =>
      calls === undefined ? '' : JSON.stringify(calls.map((call) => JSON.stringify(call))),
    ),
    tool_call_id: messages.map(({ tool_call_id: id }) => id ?? ''),
  }
  return new TextTensors(
    Object.entries(columns).map(([name, rows]) => ({
      name,
      datatype: 'BYTES',
      shape: [rows.length, 1],
      data: joinElements(rows),
    })),
  )
}

test('any messages that Seldon writes as tensors are read as they were', () => {
  const text = fc.string({ unit: 'grapheme' })
  const image = fc.record({ type: fc.constant('image_url'), image_url: fc.record({ url: text }) })
  const parts = fc.oneof(
    text,
    fc.array(fc.oneof(image, fc.record({ type: fc.constant('text'), text })), { minLength: 2 }),
    image.map((part) => [part]),
  )
  const call = fc.record({
    id: text,
    type: fc.constant('function' as const),
    function: fc.record({ name: text, arguments: text }),
  })
  const message = fc.oneof(
    fc.record({ role: fc.constantFrom('user', 'system'), content: parts }),
    fc.record({
      role: fc.constant('assistant'),
      content: fc.constant(null),
      tool_calls: fc.array(call, { minLength: 1 }),
    }),
    fc.record({ role: fc.constant('tool'), content: text, tool_call_id: fc.string({ minLength: 1 }) }),
  )
  fc.assert(
    fc.property(fc.array(message, { minLength: 1, maxLength: 5 }), (messages) => {
      expect(messagesOf(tensorsOf(messages as ChatMessage[]))).toEqual(messages)
    }),
  )
})

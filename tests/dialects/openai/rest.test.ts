import { describe, expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import { createInferenceApp } from '../../../frontend/dialects/rest-apps.ts'
import type { Job } from '../../../frontend/jobs/job.ts'
import { events } from '../../support/events.ts'
import { ask, bytes, startRig, Wire, type Answer, type Rig } from '../../support/http/rig.ts'

const OK = { status: 200, headers: {} }
const item = (text: string, more = true) => ({ ...OK, body: bytes(text), more })
const chat = (model: string, more = {}) => ({ model, messages: [{ role: 'user', content: 'Hi' }], ...more })
const post = (rig: Rig, path: string, body: unknown): Promise<Answer> =>
  ask(rig, path, { method: 'POST', body: typeof body === 'string' ? body : JSON.stringify(body) })

/** The next job, taken by a worker; `parts` as the handler would get them. */
async function taken(rig: Rig, sent: Promise<unknown>): Promise<{ job: Job; parts: Record<string, string> }> {
  const job = await Promise.race([rig.models.nextJob(), sent.then(() => undefined)])
  if (job === undefined) throw new Error('Answered without a job')
  const parts = Object.fromEntries(
    job.request.parts.map(({ name, data }) => [name, Buffer.from(data).toString()]),
  )
  rig.models.start(job)
  return { job, parts }
}

describe('the list of models', () => {
  test.each(['/v1', '/openai/v1'])('has OpenAI’s and KServe’s shape below %s', async (base) => {
    const rig = await startRig(createInferenceApp)
    const model = { id: 'm', object: 'model', created: 1, owned_by: 'torchserve-ts' }
    expect((await ask(rig, `${base}/models`)).json()).toEqual({
      object: 'list',
      data: [model],
      models: ['m'],
    })
    expect((await ask(rig, `${base}/models/a%2Fb`)).json()).toMatchObject({
      id: 'a/b',
      name: 'a/b',
      ready: true,
    })
    const unknown = await ask(rig, `${base}/models/none`)
    expect(unknown.status).toBe(404)
    expect(unknown.json()).toMatchObject({
      error: { code: 'model_not_found', type: 'invalid_request_error' },
    })
  })
})

test('/health says whether every model of the start can answer, without a token', async () => {
  const rig = await startRig(createInferenceApp, { tokens: true })
  const health = async () => {
    const { status, text } = await ask(rig, '/health')
    return [status, text]
  }
  expect(await health()).toEqual([200, '{"status":"ok"}'])
  rig.models.startup = ['m', 'loading']
  expect(await health()).toEqual([503, expect.stringContaining('"message":"Loading model"')])
})

describe('a handler that speaks the API', () => {
  test('gets the body as it came and answers for itself', async () => {
    const rig = await startRig(createInferenceApp)
    const body = JSON.stringify(chat('native', { unknown: 1 }))
    const sent = post(rig, '/v1/chat/completions', body)
    const { job, parts } = await taken(rig, sent)
    expect(parts).toEqual({ body })
    expect(job.request).toMatchObject({ method: 'chatCompletions', urlPath: 'v1/chat/completions' })
    job.respond({ ...OK, body: bytes('{"whole":1}') })
    const { status, text, headers } = await sent
    expect([status, text, headers.get('content-type')]).toEqual([200, '{"whole":1}', 'application/json'])
  })

  test('streams its chunks as events, with the end that clients look for', async () => {
    const rig = await startRig(createInferenceApp)
    const sent = post(rig, '/v1/completions', { model: 'native', prompt: 'x', stream: true })
    const { job } = await taken(rig, sent)
    job.respond(item('{"n":1}'))
    job.respond(item('{"n":2}'))
    job.respond(item('', false))
    expect(events((await sent).text)).toEqual([{ n: 1 }, { n: 2 }, '[DONE]'])
  })

  test('cannot be called by a header of the client', async () => {
    const rig = await startRig(createInferenceApp)
    const headers = { ts_dialect: 'openai-chat', method: 'chatCompletions' }
    const sent = ask(rig, '/predictions/m', { method: 'POST', body: '{}', headers })
    const { job } = await taken(rig, sent)
    expect(job.request.method).toBe('handle')
    job.respond({ ...OK, body: bytes('') })
    await sent
  })
})

describe('a handler of TorchServe’s kind', () => {
  test('gets a chat as a prompt and the other fields as JSON; its texts are the deltas', async () => {
    const rig = await startRig(createInferenceApp)
    const sent = post(rig, '/v1/chat/completions', chat('m', { stream: true, temperature: 0.5 }))
    const { job, parts } = await taken(rig, sent)
    expect(parts).toEqual({ data: 'User: Hi\nAssistant:', parameters: '{"stream":true,"temperature":0.5}' })
    const umlaut = bytes('ü')
    job.respond({ ...item(''), body: umlaut.subarray(0, 1) })
    job.respond({ ...item(''), body: umlaut.subarray(1) })
    job.respond(item(' b'))
    job.respond(item('', false))
    const chunks = events((await sent).text) as { choices: { delta: object; finish_reason: unknown }[] }[]
    expect(chunks.pop()).toBe('[DONE]')
    expect(chunks.map(({ choices }) => choices[0])).toMatchObject([
      { delta: { role: 'assistant', content: '' }, finish_reason: null },
      { delta: { content: 'ü' }, finish_reason: null },
      { delta: { content: ' b' }, finish_reason: null },
      { delta: {}, finish_reason: 'stop' },
    ])
  })

  test('answers each prompt as often as n says, in that order, and usage is not made up', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => {
      const number = rig.models.jobs.length
      setImmediate(() =>
        job.respond({ ...OK, body: bytes(`${Buffer.from(job.request.parts[0]!.data).toString()}${number}`) }),
      )
    }
    const { text, headers } = await post(rig, '/v1/completions', { model: 'm', prompt: ['a', 'b'], n: 2 })
    const answer = JSON.parse(text) as { choices: { text: string; index: number }[] }
    expect(answer.choices.map(({ text: said }) => said)).toEqual(['a1', 'a2', 'b3', 'b4'])
    const id = headers.get('x-request-id')!
    const ids = rig.models.jobs.map(({ request }) => request.requestId)
    expect(ids).toEqual([id, `${id}/1`, `${id}/2`, `${id}/3`])
    expect(answer).not.toHaveProperty('usage')
  })

  test('is cancelled at a stop; no part of it comes out', async () => {
    const rig = await startRig(createInferenceApp)
    const sent = post(rig, '/v1/completions', { model: 'm', prompt: 'x', stream: true, stop: ['END'] })
    const { job } = await taken(rig, sent)
    for (const text of ['one E', 'N', 'D two']) job.respond(item(text))
    const said = (events((await sent).text) as { choices?: { text: string }[] }[]).map(
      ({ choices }) => choices?.[0]?.text,
    )
    expect(said.join('')).toBe('one ')
    expect(rig.models.abandoned.map(({ job: gone }) => gone)).toEqual([job])
  })

  test('makes embeddings of each input', async () => {
    const rig = await startRig(createInferenceApp)
    rig.models.onJob = (job) => setImmediate(() => job.respond({ ...OK, body: bytes('[1, 2]') }))
    const { text } = await post(rig, '/v1/embeddings', { model: 'm', input: ['a', 'b'] })
    expect(JSON.parse(text)).toMatchObject({ data: [{ index: 0, embedding: [1, 2] }, { index: 1 }] })
    rig.models.onJob = (job) => setImmediate(() => job.respond({ ...OK, body: bytes('no vector') }))
    expect((await post(rig, '/v1/embeddings', { model: 'm', input: 'a' })).status).toBe(500)
  })

  test('may take the whole body, as TorchServe’s handler for vLLM does, and answer with framed events', async () => {
    const rig = await startRig(createInferenceApp)
    const sent = post(rig, '/v1/chat/completions', chat('body', { stream: true }))
    const { job, parts } = await taken(rig, sent)
    expect(JSON.parse(parts['body']!)).toEqual(chat('body', { stream: true }))
    job.respond(item('data: {"n":1}\n\n'))
    job.respond(item('data: {"n":2}\n\ndata: [DONE]\n\n', false))
    expect(events((await sent).text)).toEqual([{ n: 1 }, { n: 2 }, '[DONE]'])
    const refused = post(rig, '/v1/chat/completions', chat('body'))
    const second = await taken(rig, refused)
    second.job.respond({ ...OK, body: bytes('{"object":"error","message":"too long","code":400}') })
    expect((await refused).status).toBe(400)
  })
})

describe('an error', () => {
  test('before the first item has a status, also when a stream was asked for', async () => {
    const rig = await startRig(createInferenceApp)
    const failed = new ServeError('HANDLER_FAILED', 'Prediction failed')
    const rejected = new ServeError('HANDLER_REJECTED', 'Too long', {
      status: 400,
      reason: 'context_length_exceeded',
      param: 'messages',
    })
    const full = new ServeError('QUEUE_TIMEOUT', 'waited')
    for (const [error, status, more, retry] of [
      [failed, 500, { type: 'server_error', code: null }, 'false'],
      [rejected, 400, { code: 'context_length_exceeded', param: 'messages' }, 'false'],
      [full, 503, { type: 'server_error' }, null],
    ] as const) {
      rig.models.onJob = (job) => setImmediate(() => job.fail(error))
      const answer = await post(rig, '/v1/chat/completions', chat('native', { stream: true }))
      expect(answer.status).toBe(status)
      expect(answer.json()).toMatchObject({ error: { message: error.message, ...more } })
      expect(answer.headers.get('x-should-retry')).toBe(retry)
    }
  })

  test.each([
    ['{"model":', 'Unexpected end of JSON input'],
    [Buffer.from('{"model":"m","prompt":"\xe9"}', 'latin1'), 'Invalid UTF-8 at byte 23'],
  ])('of malformed JSON is 400 with the place: %s', async (body, why) => {
    const rig = await startRig(createInferenceApp)
    const answer = await ask(rig, '/v1/completions', { method: 'POST', body })
    const message = `The body is not valid JSON: ${why}`
    expect([answer.status, answer.json()]).toMatchObject([400, { error: { message } }])
  })

  test('of a body that is nested too deep is 400', async () => {
    const rig = await startRig(createInferenceApp)
    const deep = `${'['.repeat(30_000)}${']'.repeat(30_000)}`
    const body = `{"model":"native","messages":[{"role":"user","content":"x"}],"metadata":${deep}}`
    const answer = await ask(rig, '/v1/chat/completions', { method: 'POST', body })
    expect(answer.status).toBe(400)
    expect(answer.json()).toMatchObject({ error: { message: expect.stringContaining('nested deeper') } })
  })

  test('after it is an event, and the stream ends well', async () => {
    const rig = await startRig(createInferenceApp)
    const sent = post(rig, '/v1/chat/completions', chat('native', { stream: true }))
    const { job } = await taken(rig, sent)
    job.respond(item('{"n":1}'))
    job.fail(new ServeError('WORKER_LOST', 'Worker died.'))
    expect(events((await sent).text)).toMatchObject([
      { n: 1 },
      { error: { message: 'Worker died.' } },
      '[DONE]',
    ])
  })

  test.each([
    ['/v1/chat/completions', 'no json', 400, null],
    ['/v1/chat/completions', '[]', 400, null],
    ['/v1/chat/completions', { messages: [{ role: 'user' }] }, 400, 'model'],
    ['/v1/chat/completions', { model: 'm', messages: [] }, 400, 'messages'],
    ['/v1/chat/completions', { model: 'm', messages: [{ content: 'x' }] }, 400, 'messages[0].role'],
    ['/v1/chat/completions', chat('m', { stop: Array.from({ length: 17 }, String) }), 400, 'stop'],
    ['/v1/chat/completions', chat('m', { top_logprobs: 3 }), 400, 'top_logprobs'],
    ['/v1/chat/completions', chat('m', { n: 0 }), 400, 'n'],
    ['/v1/chat/completions', chat('m', { tool_choice: 'required' }), 400, 'tool_choice'],
    ['/v1/chat/completions', chat('m', { tools: [], tool_choice: { type: 'function' } }), 400, 'tool_choice'],
    [
      '/v1/chat/completions',
      chat('m', { response_format: { type: 'json_schema' } }),
      400,
      'response_format.json_schema',
    ],
    [
      '/v1/chat/completions',
      chat('m', {
        messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, { type: 'image_url' }] }],
      }),
      400,
      'messages[0].content[1]',
    ],
    ['/v1/completions', { model: 'm', prompt: [] }, 400, 'prompt'],
    ['/v1/completions', { model: 'm', prompt: Array.from({ length: 65 }, () => 'x'), n: 2 }, 400, 'n'],
    ['/v1/embeddings', { model: 'm', input: 'x', encoding_format: 'hex' }, 400, 'encoding_format'],
    ['/v1/chat/completions', chat('none'), 404, null],
    ['/v1/chat/completions', chat('loading'), 503, null],
    ['/v1/chat/completions', chat('full'), 429, null],
  ])('says what is wrong: %s %j', async (path, body, status, param) => {
    const rig = await startRig(createInferenceApp)
    const answer = await post(rig, path, body)
    expect(answer.status).toBe(status)
    expect(answer.json()).toMatchObject({ error: { message: expect.any(String), param } })
    expect(rig.models.jobs).toHaveLength(0)
  })

  test('of the key is 401', async () => {
    const rig = await startRig(createInferenceApp, { tokens: true })
    const refused = await ask(rig, '/v1/models')
    expect(refused.status).toBe(401)
    expect(refused.json()).toMatchObject({ error: { code: 'invalid_api_key' } })
    expect((await ask(rig, '/v1/models', { headers: { authorization: 'Bearer inference' } })).status).toBe(
      200,
    )
  })

  test.each([
    ['GET', '/v1/responses'],
    ['POST', '/v1/responses?x=1'],
    ['POST', '/openai/v1/audio/speech'],
    ['GET', '/openai/v1'],
  ])('of a path that nobody knows is told in its own form: %s %s', async (method, path) => {
    const answer = await ask(await startRig(createInferenceApp), path, { method })
    expect([answer.status, answer.json()]).toMatchObject([
      404,
      { error: { message: `${method} ${path.split('?')[0]!} is not supported`, code: 'unknown_url' } },
    ])
  })

  test('of the method is 405', async () => {
    expect((await ask(await startRig(createInferenceApp), '/v1/chat/completions')).status).toBe(405)
  })
})

describe('Seldon’s paths', () => {
  test('name the model themselves', async () => {
    const rig = await startRig(createInferenceApp)
    const { model: _model, ...body } = chat('native')
    const sent = post(rig, '/v2/models/native/infer/chat/completions', body)
    const { job, parts } = await taken(rig, sent)
    expect(JSON.parse(parts['body']!)).toEqual({ ...body, model: 'native' })
    job.respond({ ...OK, body: bytes('{}') })
    expect((await sent).status).toBe(200)
    const other = await post(rig, '/v2/models/m/infer_stream/chat/completions', chat('native'))
    expect([other.status, other.json()]).toMatchObject([400, { error: { param: 'model' } }])
  })

  test.each(['infer', 'infer_stream'])('may name the version, also of other handlers: %s', async (verb) => {
    const rig = await startRig(createInferenceApp)
    for (const model of ['native', 'body', 'm']) {
      const sent = post(rig, `/v2/models/${model}/versions/2/${verb}/chat/completions`, chat(model))
      const { job } = await taken(rig, sent)
      expect(job.request).toMatchObject({ modelName: model, modelVersion: '2' })
      job.respond({ ...OK, body: bytes('{}') })
      expect((await sent).status).toBe(200)
    }
    const unknown = await post(rig, `/v2/models/m/versions/9/${verb}/embeddings`, { input: 'x' })
    expect([unknown.status, unknown.json()]).toMatchObject([404, { error: { code: 'model_not_found' } }])
  })

  test.each(['/v2/models/m/infer', '/v2/models/m/versions/2/infer_stream', '/v1'])(
    'say that nobody here makes images: %s',
    async (base) => {
      const rig = await startRig(createInferenceApp)
      const answer = await post(rig, `${base}/images/generations`, { model: 'm', prompt: 'x' })
      expect([answer.status, answer.headers.get('x-should-retry')]).toEqual([404, 'false'])
      expect(answer.json()).toMatchObject({
        error: { message: 'Image generation is not supported', type: 'invalid_request_error' },
      })
    },
  )
})

test('a client that leaves cancels every job of its request', async () => {
  const rig = await startRig(createInferenceApp)
  const body = JSON.stringify({ model: 'm', prompt: ['a', 'b'], stream: true })
  const wire = new Wire(rig.listener.port).request('POST', '/v1/completions', body)
  await rig.models.until(() => rig.models.jobs.length === 2)
  for (const job of rig.models.jobs) rig.models.start(job)
  rig.models.jobs[0]!.respond(item('x'))
  await wire.until('data: ')
  wire.socket.destroy()
  await rig.models.until(() => rig.models.abandoned.length === 2)
  expect(rig.models.abandoned.map(({ reason }) => reason)).toEqual(['client left', 'client left'])
})

test('a request whose second job is refused cancels the first', async () => {
  const rig = await startRig(createInferenceApp)
  rig.models.onJob = () => {
    if (rig.models.jobs.length === 2) throw new ServeError('QUEUE_FULL', 'Model "m" has no room')
  }
  const { status } = await post(rig, '/v1/completions', { model: 'm', prompt: ['a', 'b'] })
  expect(status).toBe(429)
  expect(rig.models.abandoned.map(({ job, reason }) => [job === rig.models.jobs[0], reason])).toEqual([
    [true, 'failed'],
  ])
})

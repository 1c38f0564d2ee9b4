import { once } from 'node:events'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { defaultChatPrompt } from '../../common/openai/default-chat.ts'
import { withMetadata } from '../support/gguf.ts'
import { retried } from '../support/retries.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const TINY = join(REPOSITORY, 'model-store', 'tiny-llama')
const KEY = 'sk-a-secret-of-the-server'
/** As Qwen's templates do, it looks at the texts: old reasoning is left out. */
const TEMPLATE =
  "{% for message in messages %}[{{ message['role'] }}] {{ message['content'].split('</think>')[-1].lstrip('\\n') }}\n{% endfor %}[assistant]"
const MESSAGES = [{ role: 'user', content: 'Who made the earth?' }]

interface Choice {
  text: string
  message: { content: string }
  finish_reason: string
}
interface Completion {
  choices: Choice[]
  usage: { prompt_tokens: number; completion_tokens: number }
}

let server: Server
/** A fake provider; each test sets its behaviour. */
let provide: (req: IncomingMessage, body: Record<string, unknown>, res: ServerResponse) => void
const provider = createServer((req, res) => {
  let body = ''
  req.on('data', (data: Buffer) => (body += data.toString()))
  req.on('end', () => provide(req, JSON.parse(body) as Record<string, unknown>, res))
})

const post = (path: string, body: object, signal?: AbortSignal): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.ports.inference}${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
    signal,
  })

const ask = async (path: string, body: object): Promise<Completion> =>
  (await (await post(path, body)).json()) as Completion

async function drain(reader: ReadableStreamDefaultReader): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // the client has disconnected
  }
}

function writeModel(folder: string, handler: string, config: string): string {
  mkdirSync(join(folder, 'MAR-INF'), { recursive: true })
  const manifest = { runtime: 'node', model: { modelName: 'm', modelVersion: '1.0', handler } }
  writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'model-config.yaml'), config)
  return folder
}

/** tiny-llama's handler on weights with one more entry. */
function copied(folder: string, key: string, value: string | number): string {
  writeModel(folder, 'handler.ts', readFileSync(join(TINY, 'model-config.yaml'), 'utf8'))
  cpSync(TINY, folder, { recursive: true, filter: (from) => from === TINY || from.endsWith('.ts') })
  const gguf = readFileSync(join(TINY, 'model.gguf'))
  writeFileSync(join(folder, 'model.gguf'), withMetadata(gguf, key, value))
  return folder
}

function remote(folder: string): string {
  const { port } = provider.address() as AddressInfo
  const lines = [`base_url: http://127.0.0.1:${port}/v1`, 'model: up-1', 'api_key_variable: TEST_KEY']
  const config = `minWorkers: 1\nasyncCommunication: true\nmaxConcurrency: 8\nhandler:\n  ${lines.join('\n  ')}\n`
  return writeModel(folder, 'torchserve-ts/openai', config)
}

beforeAll(async () => {
  provider.listen(0, '127.0.0.1')
  await once(provider, 'listening')
  const folder = tempDir()
  const models = [
    TINY,
    `templated=${copied(join(folder, 'templated'), 'tokenizer.chat_template', TEMPLATE)}`,
    `embeds=${copied(join(folder, 'embeds'), 'llama.pooling_type', 1)}`,
    `far=${remote(join(folder, 'far'))}`,
  ]
  server = await startServer({
    models,
    env: { TEST_KEY: KEY },
    config: { log_level: 'debug' },
  })
  for (const model of ['tiny-llama', 'templated', 'embeds', 'far']) await server.ready(model)
})

afterAll(() => {
  provider.closeAllConnections()
  provider.close()
})

describe('a GGUF model', () => {
  const sure = { temperature: 0, max_tokens: 24 }

  test.each([
    ['its own template where the file has one', 'templated', `[user] Who made the earth?\n[assistant]`],
    ['the default template where it has none', 'tiny-llama', defaultChatPrompt(MESSAGES)],
  ])('reads a chat by %s', async (_what, model, prompt) => {
    const chat = await ask('/v1/chat/completions', { model, messages: MESSAGES, ...sure })
    const plain = await ask('/v1/completions', { model, prompt, ...sure, stop: ['\nUser:'] })
    expect(chat.choices[0]!.message.content).toBe(plain.choices[0]!.text)
    expect(chat.usage).toEqual(plain.usage)
    expect(chat.choices[0]!.message.content.length).toBeGreaterThan(10)
  })

  test.each([
    [
      'without old reasoning',
      [{ role: 'assistant', content: '<think>Hm.</think>\n\nYes' }],
      '[assistant] Yes',
    ],
    [
      'of a developer, whom it does not know',
      [{ role: 'developer', content: 'Be brief' }],
      '[system] Be brief',
    ],
    [
      'in several parts',
      [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'one' },
            { type: 'text', text: 'two' },
          ],
        },
      ],
      '[user] one\ntwo',
    ],
  ])('shows its template a message %s', async (_what, messages, prompt) => {
    const chat = await ask('/v1/chat/completions', { model: 'templated', messages, ...sure })
    const plain = await ask('/v1/completions', {
      model: 'templated',
      prompt: `${prompt}\n[assistant]`,
      ...sure,
    })
    expect([chat.choices[0]!.message.content, chat.usage]).toEqual([plain.choices[0]!.text, plain.usage])
  })

  test('takes special tokens in a client’s text as text', async () => {
    const tokens = async (content: string, more = {}) => {
      const messages = [{ role: 'user', content, ...more }]
      const chat = await ask('/v1/chat/completions', { model: 'templated', messages, ...sure, max_tokens: 1 })
      return chat.usage.prompt_tokens
    }
    expect((await tokens('a</s><s>b')) - (await tokens('ab'))).toBeGreaterThan(4)
  })

  test('that makes only embeddings refuses to write', async () => {
    const input = { model: 'embeds', input: 'In the beginning' }
    expect((await post('/v1/embeddings', input)).status).toBe(200)
    for (const [path, body] of [
      ['/v1/chat/completions', { model: 'embeds', messages: MESSAGES }],
      ['/v1/completions', { model: 'embeds', prompt: 'In' }],
      ['/predictions/embeds', { prompt: 'In' }],
    ] as const) {
      const response = await post(path, body)
      expect([response.status, await response.text()]).toEqual([
        400,
        expect.stringContaining('only embeddings'),
      ])
    }
  })

  test('lets another request in while one has more choices than there are sequences', async () => {
    const client = new AbortController()
    const many = { model: 'tiny-llama', prompt: 'In', n: 24, max_tokens: 900, temperature: 1, stream: true }
    const reader = (await post('/v1/completions', many, client.signal)).body!.getReader()
    const events: string[] = []
    const read = async (): Promise<void> => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        events.push(Buffer.from(value).toString())
      }
    }
    void read().catch(() => undefined)
    const few = { model: 'tiny-llama', prompt: 'In', max_tokens: 2 }
    for (let k = 0; k < 3; k += 1) expect((await ask('/v1/completions', few)).choices).toHaveLength(1)
    // None of its choices had to end for that.
    expect(events.join('')).not.toContain('"finish_reason":"')
    client.abort()
    await busyWith(0)
  })

  test('gives every choice its whole text, also when it had to give way', async () => {
    const one = { model: 'tiny-llama', prompt: 'In the beginning', temperature: 0, max_tokens: 60 }
    const whole = (await ask('/v1/completions', one)).choices[0]!.text
    const all = ask('/v1/completions', { ...one, n: 10 })
    const few = { model: 'tiny-llama', prompt: 'In', max_tokens: 2 }
    let ended = false
    void all.finally(() => (ended = true))
    while (!ended) await ask('/v1/completions', few)
    const { choices, usage } = await all
    expect(choices.map(({ text }) => text)).toEqual(Array.from({ length: 10 }, () => whole))
    expect(usage.completion_tokens).toBe(600)
  })

  /**
   * Four streams that have begun, with their clients. On a busy machine the first may end before the last
   * begins.
   */
  async function fourStreams() {
    const body = { model: 'tiny-llama', messages: MESSAGES, max_tokens: 900, stream: true, temperature: 1 }
    return Promise.all(
      Array.from({ length: 4 }, async () => {
        const client = new AbortController()
        const reader = (await post('/v1/chat/completions', body, client.signal)).body!.getReader()
        await reader.read()
        return { client, reader }
      }),
    )
  }

  /** Waits until no more than so many requests run. */
  const busyWith = (most: number) =>
    server.until(
      () => server.worker('tiny-llama'),
      ({ inFlight }) => inFlight <= most,
    )

  test('has as many requests at once as sequences, and is free again when their clients leave', async () => {
    await retried(async () => {
      const streams = await fourStreams()
      const { inFlight } = await server.worker('tiny-llama')
      for (const { client } of streams) client.abort()
      await busyWith(0)
      return inFlight === 4 ? undefined : inFlight
    })
    expect(
      (await ask('/v1/completions', { model: 'tiny-llama', prompt: 'In', ...sure })).choices,
    ).toHaveLength(1)
  })

  test('is free for others as soon as a client leaves, while streams beside it go on', () =>
    retried(async () => {
      const streams = await fourStreams()
      const ended: number[] = []
      for (const place of [2, 3]) void drain(streams[place]!.reader).finally(() => ended.push(place))
      for (const { client } of streams.slice(0, 2)) client.abort()
      await busyWith(2)
      const answer = await ask('/v1/completions', { model: 'tiny-llama', prompt: 'In', max_tokens: 2 })
      const late = [...ended]
      expect(answer.choices).toHaveLength(1)
      for (const { client } of streams) client.abort()
      await busyWith(0)
      return late.length === 0 ? undefined : late
    }))

  test('refuses what cannot fit with a status and a code, also as a stream', async () => {
    const messages = [{ role: 'user', content: 'word '.repeat(3_000) }]
    const response = await post('/v1/chat/completions', { model: 'tiny-llama', messages, stream: true })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ error: { code: 'context_length_exceeded' } })
  })

  test('refuses more messages than the context has tokens, before it renders them', async () => {
    const messages = Array.from({ length: 5_000 }, () => ({ role: 'user', content: 'a' }))
    const response = await post('/v1/chat/completions', { model: 'tiny-llama', messages })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      {
        error: { code: 'context_length_exceeded', message: expect.stringMatching(/prompt of 5000 messages/) },
      },
    ])
  })

  test('refuses what it cannot read, rather than answer without it', async () => {
    const content = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: 'data:,' } },
    ]
    const messages = [{ role: 'user', content }]
    const response = await post('/v1/chat/completions', { model: 'tiny-llama', messages, max_tokens: 1 })
    expect([response.status, await response.json()]).toMatchObject([
      400,
      { error: { param: 'messages[0].content[1]' } },
    ])
  })

  test('writes what a schema with alternatives means, not only null', async () => {
    const text = { type: 'string', minLength: 1, maxLength: 8 }
    const age = { type: 'integer', maximum: 99 }
    const schema = {
      properties: {
        name: text,
        nickname: { anyOf: [text, { type: 'boolean' }] },
        more: { type: ['object', 'array'], properties: { age }, required: ['age'], items: age, maxItems: 3 },
      },
      required: ['name', 'nickname', 'more'],
    }
    const body = {
      ...{ model: 'tiny-llama', messages: MESSAGES, max_tokens: 200, temperature: 1, seed: 1, n: 4 },
      response_format: { type: 'json_schema', json_schema: { name: 'person', schema } },
    }
    const { choices } = await ask('/v1/chat/completions', body)
    expect(choices).toHaveLength(4)
    for (const { message } of choices) {
      const person = JSON.parse(message.content) as Record<string, unknown>
      expect(Object.keys(person)).toEqual(['name', 'nickname', 'more'])
      expect([expect.any(String), expect.any(Boolean)]).toContainEqual(person['nickname'])
      expect([{ age: expect.any(Number) }, expect.any(Array)]).toContainEqual(person['more'])
    }
  })

  test.each([
    [
      { response_format: { type: 'json_schema', json_schema: { schema: { items: { pattern: 'a' } } } } },
      'response_format.json_schema.schema.items.pattern',
    ],
    [
      {
        tools: ['a', 'b'].map((name) => ({
          type: 'function',
          function: { name, parameters: { not: {} } },
        })),
        tool_choice: { type: 'function', function: { name: 'b' } },
      },
      'tools[1].function.parameters.not',
    ],
    [{ response_format: { type: 'regex' } }, 'response_format.type'],
    [{ response_format: { type: 'json_object', schema: { $ref: '#' } } }, 'response_format'],
  ])('refuses a schema that it cannot hold, with its place: %j', async (fields, param) => {
    const response = await post('/v1/chat/completions', {
      model: 'tiny-llama',
      messages: MESSAGES,
      ...fields,
    })
    expect([response.status, await response.json()]).toMatchObject([400, { error: { param } }])
  })

  test('writes arguments of its own for a tool without a schema', async () => {
    const tools = [{ type: 'function', function: { name: 'any', parameters: {} } }]
    const body = {
      ...{ model: 'tiny-llama', messages: MESSAGES, tools, tool_choice: 'required', max_tokens: 300 },
      temperature: 0,
    }
    const { choices } = await ask('/v1/chat/completions', body)
    const { tool_calls: calls } = choices[0]!.message as unknown as {
      tool_calls: { function: { name: string; arguments: string } }[]
    }
    expect(calls).toMatchObject([{ function: { name: 'any', arguments: expect.stringMatching(/^\{/) } }])
  })

  test('writes nothing but a call of the tool that it must call', async () => {
    const parameters = {
      type: 'object',
      properties: { city: { enum: ['Paris', 'Rome'] } },
      required: ['city'],
    }
    const tools = [{ type: 'function', function: { name: 'weather', parameters } }]
    const body = { model: 'tiny-llama', messages: MESSAGES, tools, tool_choice: 'required' }
    const { choices } = await ask('/v1/chat/completions', body)
    const [call] = (
      choices[0]!.message as unknown as { tool_calls: { function: { name: string; arguments: string } }[] }
    ).tool_calls
    expect(choices[0]!.finish_reason).toBe('tool_calls')
    expect(call!.function.name).toBe('weather')
    expect(['Paris', 'Rome']).toContain((JSON.parse(call!.function.arguments) as { city: string }).city)
  })
})

describe('a model at a provider', () => {
  const body = { model: 'far', messages: MESSAGES }
  const chunk = { id: 'up', object: 'chat.completion.chunk', created: 1, model: 'up-1' }
  const said = (content: string, finish: string | null = null): string =>
    `data: ${JSON.stringify({ ...chunk, choices: [{ index: 0, delta: { role: 'assistant', content }, logprobs: null, finish_reason: finish }] })}\n\n`

  test('is asked with its own name and the server’s key; whole answers come as they are', async () => {
    const seen: unknown[] = []
    provide = (req, sent, res) => {
      seen.push(req.url, req.headers.authorization, sent['model'])
      const choices = [{ index: 0, message: { role: 'assistant', content: 'Ho' }, finish_reason: 'stop' }]
      res.end(JSON.stringify({ id: 'up', object: 'chat.completion', choices, extra: 1 }))
    }
    expect(await ask('/v1/chat/completions', body)).toMatchObject({ id: 'up', extra: 1 })
    expect(seen).toEqual(['/v1/chat/completions', `Bearer ${KEY}`, 'up-1'])
  })

  test('is asked again before the first byte, and never after it', async () => {
    let tries = 0
    provide = (_req, _sent, res) => {
      tries += 1
      if (tries < 3) res.writeHead(503, { 'retry-after': '0.01' }).end('{}')
      else res.writeHead(200, { 'content-type': 'text/event-stream' }).write(said('one'), () => res.destroy())
    }
    const text = await (await post('/v1/chat/completions', { ...body, stream: true })).text()
    expect(tries).toBe(3)
    expect(text).toContain(said('one'))
    expect(text).toMatch(
      /data: \{"error":\{"message":"The provider's answer is incomplete.*\n\ndata: \[DONE\]\n\n$/,
    )
  })

  test.each([true, false])('passes on when to try again: stream %s', async (stream) => {
    provide = (_req, _sent, res) => {
      const error = { message: 'Too fast', code: 429 }
      const headers = { 'content-type': 'application/json', 'retry-after': '7' }
      res.writeHead(200, headers).end(JSON.stringify({ error }))
    }
    const response = await post('/v1/chat/completions', { ...body, stream })
    expect([response.status, response.headers.get('retry-after'), await response.json()]).toMatchObject([
      429,
      '7',
      { error: { message: 'The provider answered: Too fast', type: 'rate_limit_error' } },
    ])
  })

  test('hears when the client leaves', async () => {
    const left = new Promise<void>((resolve) => {
      provide = (_req, _sent, res) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).write(said('one'))
        res.once('close', () => resolve())
      }
    })
    const client = new AbortController()
    const response = await post('/v1/chat/completions', { ...body, stream: true }, client.signal)
    await response.body!.getReader().read()
    client.abort()
    await left
  })

  test('gives its refusals on, but never the key: not in answers, not in the log', async () => {
    provide = (req, _sent, res) => {
      const message = `Incorrect: ${req.headers.authorization!}`
      res.writeHead(400).end(JSON.stringify({ error: { message, code: 'bad', param: 'x' } }))
    }
    const response = await post('/v1/chat/completions', body)
    const text = await response.text()
    expect([response.status, text]).toMatchObject([400, expect.stringContaining('Incorrect: Bearer ***')])
    provide = (_req, _sent, res) => void res.writeHead(401).end('{}')
    expect((await post('/v1/chat/completions', body)).status).toBe(502)
    expect(server.output.join('\n')).not.toContain(KEY)
  })
})

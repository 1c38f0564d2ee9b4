import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import {
  createServer,
  type ClientRequest,
  type OutgoingHttpHeaders,
  type Server as HttpServer,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { afterEach, describe, expect, test } from '@jest/globals'
import { Provider } from '../../handlers/openai-provider/provider.ts'
import { type ProviderSettings, readProvider } from '../../handlers/openai-provider/settings.ts'

const ENV = { OPENAI_API_KEY: 'one', AZURE_OPENAI_API_KEY: 'two', OTHER: 'three' }

/** Settings as Seldon's LLM module writes them. */
const seldon = (config: object, more: object = {}) => ({
  modelSettings: { parameters: { extra: { provider_id: 'openai', config, ...more } } },
})
const read = (modelConfig: Record<string, unknown>) => readProvider({ modelConfig }, ENV)

describe('the settings of Seldon’s API runtime', () => {
  test('name model and provider; model-config.yaml wins', () => {
    const given = seldon({ model_id: 'gpt', model_type: 'chat.completions', odd: 1 })
    expect(read(given)).toMatchObject({
      baseUrl: 'https://api.openai.com/v1',
      query: '',
      model: 'gpt',
      key: 'one',
      keyHeader: 'authorization',
      warnings: ['odd has no effect in the settings of the OpenAI runtime'],
    })
    const handler = { model_id: 'own', base_url: 'http://here/v1/', api_key_variable: 'OTHER' }
    expect(read({ ...given, handler })).toMatchObject({
      model: 'own',
      baseUrl: 'http://here/v1',
      key: 'three',
    })
  })

  test('may name a deployment at Azure, with a key or a token', () => {
    const azure = {
      api_type: 'azure',
      azure_endpoint: 'https://x.azure.com/',
      azure_deployment: 'd 1',
      api_version: 'v',
    }
    expect(read(seldon(azure))).toMatchObject({
      baseUrl: 'https://x.azure.com/openai/deployments/d%201',
      query: '?api-version=v',
      key: 'two',
      keyHeader: 'api-key',
    })
    expect(read(seldon({ ...azure, api_type: 'azure_ad', azure_ad_token: 't' }))).toMatchObject({
      key: 't',
      keyHeader: 'authorization',
    })
  })

  test('of another api_type have no effect, which is said', () => {
    const open = { azure_deployment: 'd', api_version: 'v', azure_ad_token: 't', odd: null }
    expect(read(seldon(open)).warnings).toEqual([
      'azure_deployment has no effect with api_type open_ai',
      'api_version has no effect with api_type open_ai',
      'azure_ad_token has no effect with api_type open_ai',
    ])
    const azure = {
      azure_endpoint: 'https://x',
      azure_deployment: 'd',
      api_version: 'v',
      azure_ad_token: 't',
    }
    expect(read(seldon({ ...azure, api_type: 'azure' })).warnings).toEqual([
      'azure_ad_token has no effect with api_type azure',
    ])
    expect(read(seldon({ ...azure, api_type: 'azure_ad' })).warnings).toEqual([])
  })

  test.each([
    [seldon({}, { provider_id: 'gemini' }), 'provider gemini is not supported'],
    [seldon({ model_type: 'images.generations' }), 'model_type must be one of'],
    [seldon({ api_type: 'aws' }), 'api_type must be'],
    [seldon({ api_type: 'azure' }), 'azure_endpoint is required'],
    [
      seldon({ api_type: 'azure', azure_endpoint: 'https://x', azure_deployment: 'd' }),
      'api_version is required',
    ],
    [
      seldon({ api_type: 'azure', azure_endpoint: 'https://x', base_url: 'https://y' }),
      'base_url is not supported with api_type azure',
    ],
    [seldon({ azure_endpoint: 'https://x' }), 'azure_endpoint is not supported with api_type open_ai'],
    [seldon({ api_key: 'sk' }), 'api_key is not supported in a file'],
    [seldon({}, { prompt_utils: {} }), 'prompt_utils is not supported'],
    [seldon({ base_url: 'ftp://x' }), 'base_url must be'],
    [seldon({ model_id: 1 }), 'model_id must be a non-empty string'],
  ])('that cannot be followed are refused: %j', (config, message) => {
    expect(() => read(config)).toThrow(message)
  })
})

/** A provider whose responses each test sets. */
class FakeProvider {
  requests = 0
  readonly #server: HttpServer

  constructor(answer: (res: ServerResponse) => void) {
    this.#server = createServer((req, res) => {
      this.requests += 1
      req.resume().once('end', () => answer(res))
    })
  }

  async client(more: Partial<ProviderSettings> = {}): Promise<Provider> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    const { port } = this.#server.address() as AddressInfo
    const handler = { base_url: `http://127.0.0.1:${port}`, retries: 1, timeout: 60 }
    return new Provider({ ...read({ handler }), ...more })
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

let fake: FakeProvider | undefined
afterEach(() => fake?.close())

async function clientOf(
  answer: (res: ServerResponse) => void,
  more?: Partial<ProviderSettings>,
): Promise<Provider> {
  fake = new FakeProvider(answer)
  return fake.client(more)
}

const { signal } = new AbortController()
const BODY = { messages: [] }

/** The chunks of a stream and how it failed. */
async function streamOf(provider: Provider): Promise<{ chunks: unknown[]; error?: unknown }> {
  const chunks: unknown[] = []
  try {
    for await (const chunk of provider.stream('/chat/completions', BODY, signal)) chunks.push(chunk)
    return { chunks }
  } catch (error) {
    return { chunks, error }
  }
}

const JSON_TYPE = { 'content-type': 'application/json' }
const json =
  (value: unknown, head: object = JSON_TYPE) =>
  (res: ServerResponse) =>
    void res.writeHead(200, { ...head }).end(JSON.stringify(value))
const html = (res: ServerResponse) =>
  void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>\n  <h1>Blocked</h1></html>')
const NOT_JSON =
  "The provider's answer is incomplete: it is not JSON (text/html): <html> <h1>Blocked</h1></html>"

describe('a response with the status 200 that is none', () => {
  const limited = { error: { message: 'Too fast', code: 429, param: null } }
  test.each<[string, (res: ServerResponse) => void, object]>([
    [
      'an error with a status and Retry-After',
      json(limited, { ...JSON_TYPE, 'retry-after': '7' }),
      { message: 'The provider answered: Too fast', code: 429, retryAfterMs: 7_000 },
    ],
    [
      'an error that is a text',
      json({ error: 'overloaded' }),
      { message: 'The provider answered: overloaded', code: 502 },
    ],
    [
      'an error with a code that is a text',
      json({ error: { message: 'No', code: 'model_gone' } }),
      { message: 'The provider answered: No', code: 502, reason: 'model_gone' },
    ],
    [
      'an error in a choice',
      json({
        choices: [{ index: 0, error: { message: 'Upstream died', code: 503 }, finish_reason: 'error' }],
      }),
      { message: 'The provider answered: Upstream died', code: 503 },
    ],
    ['a page', html, { message: NOT_JSON, code: 502, reason: 'provider_broken' }],
  ])('fails with its reason, whole and as a stream: %s', async (_what, answer, failure) => {
    const provider = await clientOf(answer)
    await expect(provider.ask('/chat/completions', BODY, signal)).rejects.toMatchObject(failure)
    expect(await streamOf(provider)).toMatchObject({ chunks: [], error: failure })
  })

  test.each([
    ['/chat/completions', { choices: [] }, 'it has no choices'],
    ['/completions', { id: 'x' }, 'it has no choices'],
    ['/embeddings', { data: [] }, 'it has no data'],
    ['/embeddings', ['x'], 'it is not a JSON object'],
  ] as const)('fails without what it must have: %s %j', async (path, answer, why) => {
    const provider = await clientOf(json(answer))
    await expect(provider.ask(path, BODY, signal)).rejects.toMatchObject({
      code: 502,
      message: `The provider's answer is incomplete: ${why}`,
    })
  })

  test('fails as a stream without a choice, and where it is no stream', async () => {
    const usage = { choices: [], usage: { total_tokens: 1 } }
    const events = await clientOf((res) => void res.end(`data: ${JSON.stringify(usage)}\n\ndata: [DONE]\n\n`))
    const message = "The provider's answer is incomplete: it has no choices"
    expect(await streamOf(events)).toMatchObject({ chunks: [usage], error: { message } })
    fake!.close()
    const whole = await clientOf(json({ choices: [{ index: 0, message: {} }] }))
    expect(await streamOf(whole)).toMatchObject({
      chunks: [],
      error: { message: "The provider's answer is incomplete: it is not a stream" },
    })
  })

  test('fails in the middle of a stream with the reason of its event', async () => {
    const first = { choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }] }
    const last = { ...limited, choices: [{ index: 0, delta: {}, finish_reason: 'error' }] }
    const provider = await clientOf((res) => {
      res.writeHead(200, { 'content-type': 'text/event-stream', 'retry-after': '3' })
      res.end(`data: ${JSON.stringify(first)}\n\n: PROCESSING\n\ndata: ${JSON.stringify(last)}\n\n`)
    })
    expect(await streamOf(provider)).toMatchObject({
      chunks: [first],
      error: { message: 'The provider answered: Too fast', code: 429, retryAfterMs: 3_000 },
    })
  })
})

describe('Retry-After of a refusal', () => {
  const refused = (headers: OutgoingHttpHeaders) => (res: ServerResponse) =>
    void res.writeHead(429, headers).end('{"error":{"message":"Too fast"}}')

  test('is waited for when it is short', async () => {
    const provider = await clientOf(refused({ 'retry-after-ms': '5', 'retry-after': '60' }))
    await expect(provider.ask('/completions', BODY, signal)).rejects.toMatchObject({
      code: 429,
      message: 'The provider answered: Too fast',
      retryAfterMs: 5,
    })
    expect(fake!.requests).toBe(2)
  })

  test('goes to the client at once when it is long, as seconds or as a date', async () => {
    const seconds = await clientOf(refused({ 'retry-after': '60' }))
    await expect(seconds.ask('/completions', BODY, signal)).rejects.toMatchObject({ retryAfterMs: 60_000 })
    expect(fake!.requests).toBe(1)
    fake!.close()
    const date = await clientOf(refused({ 'retry-after': new Date(Date.now() + 3_600_000).toUTCString() }))
    const error = await date.ask('/completions', BODY, signal).catch((thrown: unknown) => thrown)
    expect((error as { retryAfterMs: number }).retryAfterMs / 3_600_000).toBeCloseTo(1, 1)
  })
})

describe('the time that a provider may stay silent', () => {
  const event = `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: null }] })}\n\n`

  test('is the configured one, before a response and within it', async () => {
    const sockets: Socket[] = []
    const started = (message: unknown): void => {
      sockets.push((message as { request: ClientRequest }).request.socket!)
    }
    subscribe('http.client.request.start', started)
    const held = await new Promise<{
      chunks: AsyncIterator<unknown>
      first: Promise<unknown>
      res: ServerResponse
    }>((resolve, reject) => {
      let begin!: (res: ServerResponse) => void
      const arrived = new Promise<ServerResponse>((given) => (begin = given))
      clientOf((res) => begin(res), { timeoutMs: 900_000 }).then(async (provider) => {
        const chunks = provider.stream('/chat/completions', BODY, signal)
        const first = chunks.next()
        resolve({ chunks, first, res: await arrived })
      }, reject)
    })
    unsubscribe('http.client.request.start', started)
    expect(sockets.map(({ timeout }) => timeout)).toEqual([900_000])
    held.res.writeHead(200, { 'content-type': 'text/event-stream' }).write(event)
    await held.first
    expect(sockets.map(({ timeout }) => timeout)).toEqual([900_000])
    held.res.end(`${event}data: [DONE]\n\n`)
    await held.chunks.next()
  })

  test.each([
    ['before a response', () => undefined, 0, 'The provider cannot be reached: no byte for 0.1 s'],
    [
      'in a gap of a stream',
      (res: ServerResponse) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).write(event),
      1,
      "The provider's answer is incomplete: no byte for 0.1 s",
    ],
  ])('ends the request: %s', async (_what, answer, chunks, message) => {
    const provider = await clientOf(answer, { timeoutMs: 100, retries: 0 })
    const { chunks: read, error } = await streamOf(provider)
    expect([read.length, error]).toMatchObject([chunks, { message, code: 502 }])
  })
})

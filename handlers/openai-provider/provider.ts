import { type IncomingMessage, request as plain } from 'node:http'
import { request as secure } from 'node:https'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { OpenAIError } from '../../backend-worker/openai/error.ts'
import { exactJson, parseExactJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import type { ProviderSettings } from './settings.ts'

const RETRIED: ReadonlySet<number> = new Set([408, 409, 429])
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 8_000
const MAX_ERROR_CHARACTERS = 65_536
const MAX_MESSAGE_CHARACTERS = 2_048
/** Characters of a response that is not JSON, in messages. */
const MAX_EXCERPT = 200

type Json = Record<string, unknown>

/** The operations of the API, with the list that a response must have. */
const LISTS = { '/chat/completions': 'choices', '/completions': 'choices', '/embeddings': 'data' } as const
type Path = keyof typeof LISTS

/**
 * Client of a provider with the OpenAI API. Retries failures before the first byte of an answer if a retry
 * may help, never later ones. A response with the status 200 that contains an error, no JSON or an empty list
 * fails too. No error and no log line contains the key.
 */
export class Provider {
  readonly #settings: ProviderSettings

  constructor(settings: ProviderSettings) {
    this.#settings = settings
  }

  /** The whole answer. @throws OpenAIError; the signal's reason once it is aborted */
  async ask(path: Path, body: Json, signal: AbortSignal): Promise<Json> {
    const response = await this.#send(path, body, signal)
    try {
      const answer = await this.#json(response)
      const list = answer[LISTS[path]]
      if (Array.isArray(list) && list.length > 0) return answer
      throw new Error(`it has no ${LISTS[path]}`)
    } catch (error) {
      signal.throwIfAborted()
      throw this.#broken(error)
    }
  }

  /** The chunks of a stream, unchanged. @throws OpenAIError; the signal's reason once it is aborted */
  async *stream(path: Path, body: Json, signal: AbortSignal): AsyncGenerator<Json> {
    const response = await this.#send(path, body, signal)
    let isWhole = false
    let hasChoices = false
    try {
      if (!mayStream(response)) {
        await this.#json(response)
        throw new Error('it is not a stream')
      }
      for await (const data of sseData(response)) {
        if (data.startsWith('[DONE]')) {
          isWhole = true
          continue
        }
        const chunk = this.#checked(parseExactJson(data), response)
        const choices = listOf(chunk['choices'])
        hasChoices ||= choices.length > 0
        // Not every server sends [DONE]; a choice with a finish reason also counts as the end.
        isWhole ||= choices.some((choice) => choice['finish_reason'] != null)
        yield { ...chunk, choices }
      }
      if (!isWhole) throw new Error('the stream ended too early')
      if (!hasChoices) throw new Error('it has no choices')
    } catch (error) {
      signal.throwIfAborted()
      throw this.#broken(error)
    }
  }

  async #send(path: Path, body: Json, signal: AbortSignal): Promise<IncomingMessage> {
    for (let tries = 0; ; tries++) {
      const last = tries >= this.#settings.retries
      const response = await this.#try(path, body, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        if (last) throw this.#unreachable(error)
        return undefined
      })
      const status = response?.statusCode ?? 0
      if (response !== undefined && status >= 200 && status < 300) return response
      const pause = pauseAfter(response, tries)
      const retried = response === undefined || RETRIED.has(status) || status >= 500
      if (response !== undefined && (last || !retried || pause > MAX_PAUSE_MS))
        throw await this.#failure(response)
      response?.destroy()
      await sleep(pause, undefined, { signal })
    }
  }

  #try(path: Path, body: Json, signal: AbortSignal): Promise<IncomingMessage> {
    const { baseUrl, query, key, keyHeader, model, timeoutMs } = this.#settings
    return post(`${baseUrl}${path}${query}`, {
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${key}` : key }),
      },
      body: exactJson(model === undefined ? body : { ...body, model }),
      silenceMs: timeoutMs,
      signal,
    })
  }

  /** A whole response with the status 200. @throws OpenAIError for an error in it; Error if it is not JSON */
  async #json(response: IncomingMessage): Promise<Json> {
    const body = await text(response)
    let answer: unknown
    try {
      answer = parseExactJson(body)
    } catch {
      const start = body.slice(0, MAX_EXCERPT).replaceAll(/\s+/g, ' ')
      throw new Error(`it is not JSON (${response.headers['content-type'] ?? 'no content type'}): ${start}`)
    }
    return this.#checked(answer, response)
  }

  /** @throws OpenAIError for an answer, or a chunk, that contains an error */
  #checked(answer: unknown, response: IncomingMessage): Json {
    if (!isObject(answer)) throw new Error('it is not a JSON object')
    const error =
      answer['error'] ?? listOf(answer['choices']).find((choice) => choice['error'] != null)?.['error']
    if (error == null) return answer
    throw this.#refusal(statusIn(error), error, response)
  }

  async #failure(response: IncomingMessage): Promise<OpenAIError> {
    const body = (await text(response).catch(() => '')).slice(0, MAX_ERROR_CHARACTERS)
    return this.#refusal(response.statusCode!, errorIn(body), response)
  }

  /** A rejected key is a configuration error of this server; a 401 would blame its client. */
  #refusal(status: number, given: unknown, response: IncomingMessage): OpenAIError {
    const error = isObject(given) ? given : { message: given }
    if (status === 401 || status === 403)
      return new OpenAIError('The provider rejects the key of this server', 502, {
        code: 'provider_refused',
      })
    const said =
      typeof error['message'] === 'string' && error['message'] !== '' ? error['message'] : `status ${status}`
    return new OpenAIError(this.#withoutKey(`The provider answered: ${said}`), status < 400 ? 502 : status, {
      code: typeof error['code'] === 'string' ? error['code'] : undefined,
      param: typeof error['param'] === 'string' ? error['param'] : undefined,
      retryAfterMs: retryAfterMs(response),
    })
  }

  #unreachable(error: unknown): OpenAIError {
    return new OpenAIError(this.#withoutKey(`The provider cannot be reached: ${causeOf(error)}`), 502, {
      code: 'provider_unreachable',
    })
  }

  #broken(error: unknown): OpenAIError {
    if (error instanceof OpenAIError) return error
    return new OpenAIError(this.#withoutKey(`The provider's answer is incomplete: ${causeOf(error)}`), 502, {
      code: 'provider_broken',
    })
  }

  #withoutKey(message: string): string {
    const { key } = this.#settings
    return (key === undefined ? message : message.replaceAll(key, '***')).slice(0, MAX_MESSAGE_CHARACTERS)
  }
}

/** Whether a response may consist of events; some servers give no type, or text/plain. */
function mayStream({ headers }: IncomingMessage): boolean {
  return !/^(?:application\/json|text\/html)\b/i.test(headers['content-type'] ?? '')
}

function listOf(value: unknown): Json[] {
  return Array.isArray(value) ? value.filter(isObject) : []
}

/** The error in a body: its `error`, else all of it. */
function errorIn(body: string): unknown {
  try {
    const answer: unknown = JSON.parse(body)
    return isObject(answer) ? answer['error'] : body
  } catch {
    return body
  }
}

/** Gateways put the status of an error into its code; without one it is theirs. */
function statusIn(error: unknown): number {
  const { code, status } = isObject(error) ? error : {}
  const known = [code, status].map(Number).find((each) => Number.isInteger(each) && each >= 400 && each < 600)
  return known ?? 502
}

function pauseAfter(response: IncomingMessage | undefined, tries: number): number {
  return retryAfterMs(response) ?? Math.min(FIRST_PAUSE_MS * 2 ** tries, MAX_PAUSE_MS)
}

/** Milliseconds from its headers, of which Retry-After has seconds or a date. */
function retryAfterMs(response: IncomingMessage | undefined): number | undefined {
  const { 'retry-after-ms': ms, 'retry-after': after = '' } = response?.headers ?? {}
  const seconds = Number(after)
  const wanted = [
    Number(ms),
    after === '' || Number.isNaN(seconds) ? Date.parse(after) - Date.now() : seconds * 1_000,
  ]
  return wanted.find((each) => each > 0 && Number.isFinite(each))
}

/** Both addresses of a name may fail: then the error itself has no message. */
function causeOf(error: unknown): string {
  const { message, errors } = error as { message?: string; errors?: unknown[] }
  return message || (errors?.[0] === undefined ? String(error) : causeOf(errors[0]))
}

interface Post {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** Milliseconds without a byte in either direction until the request fails; 0: no limit. */
  readonly silenceMs: number
  readonly signal: AbortSignal
}

/**
 * Sends a POST request; resolves with the head of the response, whose body fails as the request does. It does
 * not follow redirects. It does not use fetch, which ends every response whose head or next byte takes longer
 * than five minutes (headersTimeout and bodyTimeout of undici), and Node exports nothing that changes these.
 */
function post(url: string, { headers, body, silenceMs, signal }: Post): Promise<IncomingMessage> {
  const send = url.startsWith('https:') ? secure : plain
  return new Promise((resolve, reject) => {
    const request = send(url, { method: 'POST', headers, signal, timeout: silenceMs })
    let response: IncomingMessage | undefined
    request.on('timeout', () => {
      const error = new Error(`no byte for ${silenceMs / 1_000} s`)
      if (response === undefined) request.destroy(error)
      else response.destroy(error)
    })
    request.on('response', (head) => {
      response = head
      resolve(head)
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** Limit of one event in characters; larger than any event of a chat. */
const MAX_EVENT_CHARACTERS = 16 * 1024 * 1024

/**
 * The data of each Server-Sent Event, without comments and other fields.
 * @throws Error for an event over the limit
 */
async function* sseData(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  let data: string[] = []
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r(?!$)/)
    rest = lines.pop()!
    if (rest.length > MAX_EVENT_CHARACTERS)
      throw new Error(`An event of the provider must have at most ${MAX_EVENT_CHARACTERS} characters`)
    for (const line of lines) {
      if (line.startsWith('data:')) data.push(line.slice(line.startsWith('data: ') ? 6 : 5))
      if (line !== '' || data.length === 0) continue
      yield data.join('\n')
      data = []
    }
  }
  if (rest.startsWith('data:')) data.push(rest.slice(5).trimStart())
  if (data.length > 0) yield data.join('\n')
}

import { setTimeout as sleep } from 'node:timers/promises'
import { parseJson } from '../../common/json.ts'
import { startTimer } from '../../common/timer.ts'
import { OpenAIError } from '../../backend-worker/openai/error.ts'
import type { ProviderSettings } from './settings.ts'
import { sseData } from './sse-data.ts'

const RETRIED: ReadonlySet<number> = new Set([408, 409, 429])
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 8_000
const MAX_ERROR_CHARACTERS = 65_536
const MAX_MESSAGE_CHARACTERS = 2_048

type Json = Record<string, unknown>

/**
 * Client of a provider with the OpenAI API. Retries failures before the first byte of an answer if a retry
 * may help, never later ones. No error and no log line contains the key.
 */
export class Provider {
  readonly #settings: ProviderSettings

  constructor(settings: ProviderSettings) {
    this.#settings = settings
  }

  /** The whole answer. @throws OpenAIError; the signal's reason once it is aborted */
  async ask(path: string, body: Json, signal: AbortSignal): Promise<Json> {
    const response = await this.#send(path, body, signal)
    try {
      return (await response.json()) as Json
    } catch (error) {
      signal.throwIfAborted()
      throw this.#broken(error)
    }
  }

  /** The chunks of a stream, unchanged. @throws OpenAIError; the signal's reason once it is aborted */
  async *stream(path: string, body: Json, signal: AbortSignal): AsyncGenerator<Json> {
    const response = await this.#send(path, body, signal)
    const ended = { well: false }
    try {
      for await (const data of sseData(bodyOf(response))) {
        if (data.startsWith('[DONE]')) ended.well = true
        else yield this.#chunk(data, ended)
      }
    } catch (error) {
      signal.throwIfAborted()
      throw error instanceof OpenAIError ? error : this.#broken(error)
    }
    if (!ended.well) throw this.#broken(new Error('the stream ended too early'))
  }

  #chunk(data: string, ended: { well: boolean }): Json {
    const chunk = JSON.parse(data) as Json
    if (chunk['error'] != null) throw this.#refusal(502, chunk)
    const choices = Array.isArray(chunk['choices']) ? (chunk['choices'] as { finish_reason?: unknown }[]) : []
    // Not every server sends [DONE]; a choice with a finish reason also counts as the end.
    if (choices.some((choice) => choice.finish_reason != null)) ended.well = true
    return { ...chunk, choices }
  }

  async #send(path: string, body: Json, signal: AbortSignal): Promise<Response> {
    for (let tries = 0; ; tries++) {
      const last = tries >= this.#settings.retries
      const response = await this.#try(path, body, signal).catch((error: unknown) => {
        signal.throwIfAborted()
        if (last) throw this.#unreachable(error)
        return undefined
      })
      if (response?.ok === true) return response
      const retried = response === undefined || RETRIED.has(response.status) || response.status >= 500
      if (response !== undefined && (last || !retried)) throw await this.#failure(response)
      const pause = pauseAfter(response, tries)
      await response?.body?.cancel()
      await sleep(pause, undefined, { signal })
    }
  }

  async #try(path: string, body: Json, signal: AbortSignal): Promise<Response> {
    const { baseUrl, query, key, keyHeader, model, timeoutMs } = this.#settings
    const patience = new AbortController()
    const timer = startTimer(() => patience.abort(new Error('no answer in time')), timeoutMs)
    try {
      return await fetch(`${baseUrl}${path}${query}`, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          ...(key !== undefined && { [keyHeader]: keyHeader === 'authorization' ? `Bearer ${key}` : key }),
        },
        body: JSON.stringify(model === undefined ? body : { ...body, model }),
        signal: AbortSignal.any([signal, patience.signal]),
        // A redirect must not send the key to another address.
        redirect: 'error',
      })
    } finally {
      clearTimeout(timer)
    }
  }

  async #failure(response: Response): Promise<OpenAIError> {
    const text = (await response.text().catch(() => '')).slice(0, MAX_ERROR_CHARACTERS)
    return this.#refusal(response.status, parsed(text) ?? { error: { message: text } })
  }

  /** A rejected key is a configuration error of this server; a 401 would blame its client. */
  #refusal(status: number, answer: Json): OpenAIError {
    const given = answer['error']
    const error = (typeof given === 'object' && given !== null ? given : { message: given }) as Json
    if (status === 401 || status === 403)
      return new OpenAIError('The provider rejects the key of this server', 502, {
        code: 'provider_refused',
      })
    const said =
      typeof error['message'] === 'string' && error['message'] !== '' ? error['message'] : `status ${status}`
    return new OpenAIError(this.#withoutKey(`The provider answered: ${said}`), status < 400 ? 502 : status, {
      code: typeof error['code'] === 'string' ? error['code'] : undefined,
      param: typeof error['param'] === 'string' ? error['param'] : undefined,
    })
  }

  #unreachable(error: unknown): OpenAIError {
    return new OpenAIError(this.#withoutKey(`The provider cannot be reached: ${causeOf(error)}`), 502, {
      code: 'provider_unreachable',
    })
  }

  #broken(error: unknown): OpenAIError {
    return new OpenAIError(this.#withoutKey(`The provider's answer is incomplete: ${causeOf(error)}`), 502, {
      code: 'provider_broken',
    })
  }

  #withoutKey(message: string): string {
    const { key } = this.#settings
    return (key === undefined ? message : message.replaceAll(key, '***')).slice(0, MAX_MESSAGE_CHARACTERS)
  }
}

function pauseAfter(response: Response | undefined, tries: number): number {
  const asked = Number(response?.headers.get('retry-after'))
  const pause = asked > 0 ? asked * 1000 : FIRST_PAUSE_MS * 2 ** tries
  return Math.min(pause, MAX_PAUSE_MS)
}

function bodyOf(response: Response): AsyncIterable<Uint8Array> {
  if (response.body === null) throw new Error('there is no body')
  return response.body
}

function causeOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? error.cause.message : error.message
}

function parsed(text: string): Json | undefined {
  const value = parseJson(text)
  return typeof value === 'object' && value !== null ? (value as Json) : undefined
}

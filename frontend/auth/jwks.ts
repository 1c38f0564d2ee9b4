import type * as Jose from 'jose'
import { WatchedFile } from './watched-file.ts'

type KeyFinder = Jose.JWTVerifyGetKey

/** A key that is not in the set makes the server ask for the set again, at most once in this time. */
const COOLDOWN_MS = 30_000
/** After a failure the set is asked for again after this time. */
const RETRY_MS = 5_000
/** The set is asked for again when it is older. */
export const JWKS_MAX_AGE_MS = 600_000
const MAX_JWKS_BYTES = 1_048_576

export interface KeySet {
  readonly find: KeyFinder
  close(): void
}

export interface KeySetOptions {
  readonly jose: typeof Jose
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly warn: (message: string) => void
}

/** The keys of an https or http address, fetched when the first token is checked. */
export function remoteKeySet(url: URL, { jose, now, warn }: KeySetOptions): KeySet {
  const fetcher = new SparingFetch(now, warn)
  const find = jose.createRemoteJWKSet(url, {
    cooldownDuration: COOLDOWN_MS,
    cacheMaxAge: JWKS_MAX_AGE_MS,
    [jose.customFetch]: fetcher.fetch,
  })
  return { find, close: () => undefined }
}

/** The keys of a file, read again when it changes. */
export async function fileKeySet(path: string, { jose, warn }: KeySetOptions): Promise<KeySet> {
  let keys: KeyFinder | undefined
  const onText = (text: string): void => {
    keys = jose.createLocalJWKSet(JSON.parse(text) as Jose.JSONWebKeySet)
  }
  const complaint = `The key set ${path} cannot be used: `
  const file = new WatchedFile({ path, onText, warn, complaint })
  await file.open()
  return { find: (header, token) => keys!(header, token), close: () => file.close() }
}

/** jose waits after a success, but asks for each token again while the address fails. */
class SparingFetch {
  readonly #now: () => number
  readonly #warn: (message: string) => void
  #failedAt = -Infinity

  constructor(now: () => number, warn: (message: string) => void) {
    this.#now = now
    this.#warn = warn
  }

  readonly fetch: Jose.FetchImplementation = async (url, options) => {
    if (this.#now() - this.#failedAt < RETRY_MS)
      throw new Error('The key set could not be fetched a moment ago')
    try {
      return await this.#checked(await fetch(url, options))
    } catch (error) {
      this.#failedAt = this.#now()
      this.#warn(
        `The key set ${url} cannot be fetched: ${reasonOf(error)}; tokens that it would check are refused`,
      )
      throw error
    }
  }

  /** @throws Error unless it is a key set of a sane size */
  async #checked(response: Response): Promise<Response> {
    if (response.status !== 200) throw new Error(`status ${response.status}`)
    const chunks: Uint8Array[] = []
    let bytes = 0
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      bytes += chunk.byteLength
      if (bytes > MAX_JWKS_BYTES) throw new Error('it is larger than 1 MiB')
      chunks.push(chunk)
    }
    const text = Buffer.concat(chunks).toString()
    const { keys } = JSON.parse(text) as { keys?: unknown }
    if (!Array.isArray(keys)) throw new Error('it is not a JSON Web Key Set')
    return new Response(text, { headers: { 'content-type': 'application/json' } })
  }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message} (${cause.message})` : message
}

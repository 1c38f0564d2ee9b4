import type { IncomingMessage } from 'node:http'
import { isLoopbackHost } from '../../../common/addresses.ts'
import type { Settings } from '../../config/settings.ts'
import type { HttpCall } from './http-call.ts'
import { allowedOrigins, pageOf } from './page-check.ts'
import { baseHeaders } from './safe-response.ts'

export type CorsSettings = Pick<
  Settings,
  'corsAllowedOrigin' | 'corsAllowedMethods' | 'corsAllowedHeaders' | 'corsExposedHeaders'
>

/** The item of cors_allowed_origin for every page of this machine. */
const LOOPBACK = 'loopback'

/**
 * The headers with which browsers let pages of other origins use a server
 * (https://fetch.spec.whatwg.org/#http-cors-protocol).
 */
export class Cors {
  readonly #origins: readonly string[]
  readonly #methods: string | undefined
  readonly #headers: string | undefined
  readonly #exposed: string | undefined

  constructor(settings: CorsSettings) {
    this.#origins = allowedOrigins(settings)
    this.#methods = settings.corsAllowedMethods
    this.#headers = settings.corsAllowedHeaders
    this.#exposed = settings.corsExposedHeaders
  }

  /** Undefined: the configuration sets none of these headers. */
  static of(settings: CorsSettings): Cors | undefined {
    const { corsAllowedOrigin, corsAllowedMethods, corsAllowedHeaders, corsExposedHeaders } = settings
    const all = [corsAllowedOrigin, corsAllowedMethods, corsAllowedHeaders, corsExposedHeaders]
    return all.every((each) => each === undefined) ? undefined : new Cors(settings)
  }

  /** Adds the headers of a response that its handler has not set. `flat` is name, value, name, value. */
  addTo(flat: string[], request: IncomingMessage): void {
    const preflight = this.#preflightOf(request)
    const own = [
      ...this.#origin(request.headers.origin),
      ['access-control-allow-methods', this.#methods ?? preflight?.method],
      ['access-control-allow-headers', this.#headers ?? preflight?.headers],
      ['access-control-expose-headers', this.#exposed],
    ] as const
    const set = flat.filter((_text, i) => i % 2 === 0).map((name) => name.toLowerCase())
    for (const [name, value] of own) if (value !== undefined && !set.includes(name)) flat.push(name, value)
  }

  /**
   * Answers the request with which a browser asks whether a page may send another one; it has no token.
   * @returns false: it is no such request, or no page is allowed any
   * @throws ServeError PAYLOAD_TOO_LARGE, SHUTTING_DOWN
   */
  answered(call: HttpCall): boolean {
    if (this.#preflightOf(call.req) === undefined) return false
    call.admit(undefined)
    call.reply.answer(200, baseHeaders(call.requestId, call.reply.keepsAlive(200)), Buffer.alloc(0))
    return true
  }

  #preflightOf({ method, headers }: IncomingMessage): { method: string; headers?: string } | undefined {
    const asked = headers['access-control-request-method']
    if (method !== 'OPTIONS' || headers.origin === undefined || asked === undefined) return undefined
    if (this.#origins.length === 0) return undefined
    return { method: asked, headers: headers['access-control-request-headers'] }
  }

  /** A single origin is in every response, as in TorchServe; of several, the one that asks. */
  #origin(origin: string | undefined): [name: string, value: string | undefined][] {
    const [only, ...others] = this.#origins
    if (only === undefined) return []
    if (others.length === 0 && only !== LOOPBACK) return [['access-control-allow-origin', only]]
    const isAllowed = origin !== undefined && this.#allows(origin.toLowerCase())
    return [
      ['access-control-allow-origin', isAllowed ? origin : undefined],
      ['vary', 'Origin'],
    ]
  }

  #allows(origin: string): boolean {
    const items = this.#origins.map((each) => each.toLowerCase())
    if (items.includes('*') || items.includes(origin)) return true
    return items.includes(LOOPBACK) && isLoopbackHost(pageOf(origin)?.name ?? '')
  }
}

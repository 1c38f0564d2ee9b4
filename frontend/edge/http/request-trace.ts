import type { HeaderCarrier, RequestSpan, SpanAttributes, Tracing } from '../../observe/traces/tracing.ts'
import type { HttpCall } from './http-call.ts'

export type { RequestSpan, SpanAttributes }

/** Who probes health asks every few seconds; nobody reads such traces. */
const PROBES: ReadonlySet<string> = new Set(['ping', 'health', 'v2/health/live', 'v2/health/ready'])

/**
 * Begins the span of a request, which its response ends. The client finds its context in the header
 * `traceresponse` (https://w3c.github.io/trace-context/#traceresponse-header). Undefined: the request has no
 * span.
 */
export function traceRequest(call: HttpCall, tracing: Tracing): RequestSpan | undefined {
  const { req, res, target, state, requestId } = call
  if (state.listener === 'metrics' || isProbe(target.segments)) return undefined
  const method = req.method!
  const headers = new RawHeaders(req.rawHeaders)
  const span = tracing.request(method, headers)
  res.span = span
  if (span?.recording !== true) return span
  const route = state.routes?.of(target.segments)
  if (route !== undefined) span.rename(method, route)
  span.set([
    'http.request.method',
    method,
    'http.route',
    route,
    'url.path',
    `/${target.segments.join('/')}`,
    'url.scheme',
    'encrypted' in req.socket ? 'https' : 'http',
    'network.protocol.version',
    req.httpVersion,
    'client.address',
    req.socket.remoteAddress,
    'user_agent.original',
    headers.get('user-agent'),
    'torchserve_ts.request.id',
    requestId,
  ])
  return span
}

function isProbe(segments: readonly string[]): boolean {
  return segments.length <= 3 && PROBES.has(segments.join('/'))
}

/** Node's flat list of names and values, as the client wrote them. */
class RawHeaders implements HeaderCarrier {
  readonly #list: string[]

  constructor(list: string[]) {
    this.#list = list
  }

  /** Of several headers of this name the values together, as HTTP means them. */
  get(name: string): string | undefined {
    let at = this.#find(name, 0)
    if (at === -1) return undefined
    let value = this.#list[at + 1]!
    for (at = this.#find(name, at + 2); at !== -1; at = this.#find(name, at + 2))
      value += `,${this.#list[at + 1]!}`
    return value
  }

  delete(name: string): void {
    const list = this.#list
    for (let at = this.#find(name, 0); at !== -1; at = this.#find(name, at)) list.splice(at, 2)
  }

  #find(name: string, from: number): number {
    const list = this.#list
    for (let i = from; i < list.length; i += 2) {
      if (list[i]!.length === name.length && list[i]!.toLowerCase() === name) return i
    }
    return -1
  }
}

import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { status as Status } from '@grpc/grpc-js'
import { ownValue, setOwn } from '../../../common/json.ts'
import { VERSION_HEADER } from '../../jobs/job.ts'
import type { HeaderCarrier, RequestSpan, Tracing } from '../../observe/traces/tracing.ts'

/** Status that was sent on a stream; undefined: none was. */
export function sentStatus(stream: ServerHttp2Stream): number | undefined {
  const sent = stream.sentTrailers?.['grpc-status'] ?? stream.sentHeaders?.['grpc-status']
  return sent === undefined ? undefined : Number(sent)
}

/** Statuses that are the fault of the server or of its handler. */
const FAILURES: ReadonlySet<number> = new Set([
  Status.UNKNOWN,
  Status.DEADLINE_EXCEEDED,
  Status.UNIMPLEMENTED,
  Status.INTERNAL,
  Status.UNAVAILABLE,
  Status.DATA_LOSS,
])

/** Rpcs that probe health every few seconds; nobody reads such traces. */
const PROBES: ReadonlySet<string> = new Set(['Ping', 'ServerLive', 'ServerReady'])

/**
 * Begins the span of a call, and ends it with its stream. Undefined: it has none.
 * https://opentelemetry.io/docs/specs/semconv/rpc/grpc/
 */
export function traceCall(
  tracing: Tracing,
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  path: string,
): RequestSpan | undefined {
  const [, service, method = ''] = path.split('/')
  if (PROBES.has(method)) return undefined
  const span = tracing.request(path.slice(1), new Http2Headers(headers))
  if (span?.recording !== true) return span
  span.set([
    'rpc.system',
    'grpc',
    'rpc.service',
    service,
    'rpc.method',
    method,
    'client.address',
    stream.session?.socket.remoteAddress,
    'user_agent.original',
    headers['user-agent'],
  ])
  stream.once('close', () => {
    const code = sentStatus(stream) ?? Status.CANCELLED
    const version = stream.sentHeaders?.[VERSION_HEADER]
    const failed = FAILURES.has(code)
    span.set([
      'rpc.grpc.status_code',
      code,
      'torchserve_ts.model.version',
      version?.toString(),
      'error.type',
      failed ? Status[code] : undefined,
    ])
    span.end(failed)
  })
  return span
}

/** The headers of an HTTP/2 request, of which grpc-js makes the metadata. */
class Http2Headers implements HeaderCarrier {
  readonly #headers: IncomingHttpHeaders

  constructor(headers: IncomingHttpHeaders) {
    this.#headers = headers
  }

  get(name: string): string | undefined {
    const value = ownValue(this.#headers, name)
    return typeof value === 'string' ? value : value?.[0]
  }

  delete(name: string): void {
    // grpc-js leaves it out then.
    if (this.get(name) !== undefined) setOwn(this.#headers, name, undefined)
  }
}

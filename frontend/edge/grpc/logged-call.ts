import type { ServerHttp2Stream } from 'node:http2'
import { status as Status } from '@grpc/grpc-js'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import { loggedTraceId, type RequestSpan } from '../../observe/traces/tracing.ts'

const OK: number = Status.OK

/** Status that was sent on a stream; undefined: none was. */
export function sentStatus(stream: ServerHttp2Stream): number | undefined {
  const sent = stream.sentTrailers?.['grpc-status'] ?? stream.sentHeaders?.['grpc-status']
  return sent === undefined ? undefined : Number(sent)
}

/** A call whose line in the access log (docs/metrics-and-logs.md) is written when its stream closes. */
export class LoggedCall {
  readonly #log: AccessLog
  readonly #peer: string
  readonly #path: string
  readonly #span: RequestSpan | undefined
  readonly #startedAt = Date.now()

  /** `peer`: as grpc-js writes it; `span`: undefined when it has none. */
  constructor(log: AccessLog, peer: string, path: string, span: RequestSpan | undefined) {
    this.#log = log
    this.#peer = peer
    this.#path = path
    this.#span = span
  }

  /** A stream that closes without a status was cancelled. */
  closed(stream: ServerHttp2Stream): void {
    const code = sentStatus(stream) ?? Status.CANCELLED
    const traceId = loggedTraceId(this.#span, code !== OK)
    this.#log.grpc(this.#peer, this.#path, code, this.#startedAt, traceId)
  }
}

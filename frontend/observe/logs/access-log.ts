import type { IncomingMessage } from 'node:http'
import { escapeControls, redactSecrets } from '../../../common/texts.ts'
import type { LineWriter } from './appender.ts'
import { localTime } from './log-line.ts'

/** Characters of a request line that are logged: a path over gRPC may have 64 KB. */
const MAX_REQUEST = 2_000
/** Request lines that need no escaping. */
const PLAIN = /^[\x20-\x7e]*$/

/** Writes one line per answered request, in the format of TorchServe's access_log.log. */
export class AccessLog {
  readonly #lines: LineWriter

  constructor(lines: LineWriter) {
    this.#lines = lines
  }

  /**
   * Logs a REST answer.
   * @param peer the client: `/127.0.0.1:50000`
   * @param startedAt when its request arrived, in milliseconds since the epoch
   * @param traceId ends the line, if there is one
   */
  rest(peer: string, req: IncomingMessage, status: number, startedAt: number, traceId?: string): void {
    const { method, url, httpVersion } = req
    const request = printable(`${method} ${redactSecrets(url!)} HTTP/${httpVersion}`)
    this.#add(peer, request, status, startedAt, traceId)
  }

  /** Logs a request that is not valid HTTP, with TorchServe's line for it. */
  malformed(peer: string, status: number): void {
    this.#add(peer, 'GET /bad-request HTTP/1.1', status, Date.now())
  }

  /** Logs a gRPC call by its path `/package.Service/Method`. */
  grpc(peer: string, path: string, code: number, startedAt: number, traceId?: string): void {
    this.#add(`/${peer}`, printable(`gRPC ${path.slice(1)} HTTP/2.0`), code, startedAt, traceId)
  }

  #add(peer: string, request: string, status: number, startedAt: number, traceId?: string): void {
    const now = Date.now()
    const trace = traceId === undefined ? '' : ` trace_id=${traceId}`
    this.#lines.write(
      `${localTime(now)} - ${peer} "${request}" ${status} ${Math.max(0, now - startedAt)}${trace}\n`,
    )
  }
}

function printable(request: string): string {
  const shown = request.length <= MAX_REQUEST ? request : `${request.slice(0, MAX_REQUEST)}…`
  return PLAIN.test(shown) ? shown : escapeControls(shown)
}

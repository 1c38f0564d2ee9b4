import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { redactSecrets } from '../../../common/redact.ts'
import { stamp } from './clock.ts'
import { escapeControls } from './escape.ts'
import type { LineWriter } from './log-file.ts'

/** What a request line may hold without being looked at more closely. */
const PLAIN = /^[\x20-\x7e]*$/

const PEER = Symbol('peer')

interface KnownSocket extends Socket {
  [PEER]?: string
}

/** One line per answered request, as TorchServe writes them (spec 8.6, 3.4). */
export class AccessLog {
  readonly #lines: LineWriter
  /** Requests come in runs of the same kind: the last one, and how it is shown. */
  #last = { method: '', url: '', httpVersion: '', shown: '' }

  constructor(lines: LineWriter) {
    this.#lines = lines
  }

  /** A REST answer: its status, and when its request came (milliseconds since the epoch). */
  rest({ socket, method, url, httpVersion }: IncomingMessage, status: number, startedAt: number): void {
    const last = this.#last
    if (last.url !== url || last.method !== method || last.httpVersion !== httpVersion) {
      const shown = printable(`${method} ${redactSecrets(url!)} HTTP/${httpVersion}`)
      this.#last = { method: method!, url: url!, httpVersion, shown }
    }
    this.#add(peerOf(socket), this.#last.shown, status, startedAt)
  }

  /** What was no HTTP request. TorchServe's line for it. */
  malformed(socket: Socket, status: number): void {
    this.#add(peerOf(socket), 'GET /bad-request HTTP/1.1', status, Date.now())
  }

  /** A gRPC call by its path `/package.Service/Method`. */
  grpc(peer: string, path: string, code: number, startedAt: number): void {
    this.#add(`/${peer}`, printable(`gRPC ${path.slice(1)} HTTP/2.0`), code, startedAt)
  }

  #add(peer: string, request: string, status: number, startedAt: number): void {
    const now = Date.now()
    this.#lines.write(`${stamp(now).text} - ${peer} "${request}" ${status} ${Math.max(0, now - startedAt)}\n`)
  }
}

function printable(request: string): string {
  return PLAIN.test(request) ? request : escapeControls(request)
}

/** `/127.0.0.1:50000`; the clients of a Unix socket have no address, and are shown as TorchServe shows them. */
function peerOf(socket: KnownSocket): string {
  return (socket[PEER] ??=
    socket.remoteAddress === undefined ? '127.0.0.1' : `/${socket.remoteAddress}:${socket.remotePort}`)
}

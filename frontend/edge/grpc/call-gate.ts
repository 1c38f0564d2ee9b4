import type { IncomingHttpHeaders, Http2Session, ServerHttp2Stream } from 'node:http2'
import { status as Status, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { Access, ServedService } from './access.ts'
import { ByteBudget } from './byte-budget.ts'
import { Decompressor } from './decompressor.ts'
import type { CallError } from '../../dialects/torchserve/grpc-errors.ts'
import { CALL_BYTES, connectionBytes, listenerBytes, MAX_REFUSED_CALLS } from './limits.ts'
import { PUBLIC_MESSAGE_BYTES, UNAUTHORIZED_BYTES, type GrpcLimits } from './limits.ts'
import { RequestReader } from './request-reader.ts'

const SWEEP_MS = 1_000
const NGHTTP2_ENHANCE_YOUR_CALM = 11
/** What a header counts beside its name and value (RFC 9113, 6.5.2). */
const HEADER_BYTES = 32

/** What grpc-js does with a stream. */
export type StreamTaker = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  ...rest: unknown[]
) => void

interface Rpc extends Access {
  readonly isStream: boolean
}

/** What is known of a connection. */
interface Connection {
  readonly budget: ByteBudget
  /** Calls that were refused while it had none that was let in. */
  refused: number
  authorized: boolean
}

interface CallGateOptions {
  readonly authorizer: Authorizer
  readonly limits: GrpcLimits
  readonly accessLog: AccessLog | undefined
}

/**
 * Lets calls in when their metadata is there: before anything of a message is read, and before grpc-js knows of them. What it lets in
 * reads its request through a RequestReader.
 */
export class CallGate {
  /** Tells the gate which call grpc-js has made for a stream; must be the last one of its interceptors, which is the outermost. */
  readonly interceptor: ServerInterceptor
  readonly #options: CallGateOptions
  readonly #rpcs: ReadonlyMap<string, Rpc>
  readonly #whole: ByteBudget
  readonly #decompressor: Decompressor
  readonly #connections = new WeakMap<Http2Session, Connection>()
  readonly #readers = new Set<RequestReader>()
  #admitted: RequestReader | undefined
  #sweeper: NodeJS.Timeout | undefined

  constructor(served: readonly ServedService[], options: CallGateOptions) {
    const { limits } = options
    this.#options = options
    this.#rpcs = rpcsOf(served)
    this.#whole = new ByteBudget(listenerBytes(limits))
    this.#decompressor = new Decompressor(limits.maxRequestSize, limits.grpcMaxDecompressionRatio)
    this.interceptor = (_method, call) => {
      if (this.#admitted !== undefined) this.#admitted.call = call
      return call instanceof ServerInterceptingCall ? call : new ServerInterceptingCall(call)
    }
  }

  /** Bytes that calls and unfinished messages of all connections count now. */
  get waitingBytes(): number {
    return this.#whole.taken
  }

  /** Takes a new stream; `letIn` gives it to grpc-js. True: it is a call that was let in. */
  take(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    letIn: () => void,
  ): boolean {
    const session = stream.session
    if (session === undefined || stream.destroyed) return false
    const connection = this.#connectionOf(session)
    const path = headers[':path'] ?? ''
    const rpc = this.#rpcs.get(path)
    if (rpc === undefined) {
      // grpc-js has the answer to it, and reads nothing.
      letIn()
      this.#countRefusal(connection, session)
      return false
    }
    const metadataBytes = sizeOf(rawHeaders)
    const refusal = this.#refusalOf(rpc, headers, metadataBytes, connection, session.socket.remoteAddress)
    if (refusal !== undefined) {
      this.#refuse(stream, path, refusal)
      this.#countRefusal(connection, session)
      return false
    }
    this.#read(stream, rpc, connection, headers, CALL_BYTES + metadataBytes, letIn)
    return true
  }

  #refusalOf(
    { token, toCallError }: Rpc,
    headers: IncomingHttpHeaders,
    metadataBytes: number,
    connection: Connection,
    address: string | undefined,
  ): CallError | undefined {
    const { limits, authorizer } = this.#options
    if (metadataBytes > limits.grpcMaxMetadataSize) {
      const details = `Metadata must have at most ${limits.grpcMaxMetadataSize} bytes (grpc_max_metadata_size)`
      return { code: Status.RESOURCE_EXHAUSTED, details }
    }
    if (token !== undefined) {
      try {
        authorizer.check(token, headers.authorization, address)
      } catch (thrown) {
        return toCallError(ServeError.from(thrown))
      }
      if (!connection.authorized) {
        connection.authorized = true
        connection.budget.limit = connectionBytes(limits)
      }
    }
    if (connection.budget.take(CALL_BYTES + metadataBytes)) return undefined
    return { code: Status.RESOURCE_EXHAUSTED, details: 'Too many calls are open; end some of them first' }
  }

  #read(
    stream: ServerHttp2Stream,
    { token, isStream }: Rpc,
    { budget }: Connection,
    headers: IncomingHttpHeaders,
    callBytes: number,
    letIn: () => void,
  ): void {
    const { maxRequestSize } = this.#options.limits
    const encoding = headers['grpc-encoding']
    const reader = new RequestReader(stream, {
      budget,
      callBytes,
      maxMessage: token === undefined ? Math.min(maxRequestSize, PUBLIC_MESSAGE_BYTES) : maxRequestSize,
      isStream,
      encoding: typeof encoding === 'string' ? encoding : 'identity',
      decompressor: this.#decompressor,
    })
    this.#readers.add(reader)
    stream.on('close', () => {
      this.#readers.delete(reader)
      reader.close()
    })
    this.#sweeper ??= setInterval(this.#sweep, SWEEP_MS).unref()
    this.#admitted = reader
    try {
      letIn()
    } finally {
      this.#admitted = undefined
    }
    if (reader.call !== undefined) reader.attach()
  }

  #refuse(stream: ServerHttp2Stream, path: string, { code, details }: CallError): void {
    const { remoteAddress, remotePort } = stream.session?.socket ?? {}
    this.#options.accessLog?.grpc(`${remoteAddress}:${remotePort}`, path, code, Date.now())
    stream.on('error', () => undefined)
    const headers = {
      ':status': 200,
      'content-type': 'application/grpc+proto',
      'grpc-status': code,
      'grpc-message': encodeURI(details),
    }
    stream.respond(headers, { endStream: true })
    stream.close()
  }

  #countRefusal(connection: Connection, session: Http2Session): void {
    if (connection.authorized || ++connection.refused < MAX_REFUSED_CALLS) return
    // At once: hundreds of calls may have come with the same read of the socket.
    session.destroy(new Error('No call of this connection was let in'), NGHTTP2_ENHANCE_YOUR_CALM)
  }

  #connectionOf(session: Http2Session): Connection {
    let connection = this.#connections.get(session)
    if (connection === undefined) {
      const budget = new ByteBudget(UNAUTHORIZED_BYTES, this.#whole)
      connection = { budget, refused: 0, authorized: false }
      this.#connections.set(session, connection)
    }
    return connection
  }

  readonly #sweep = (): void => {
    const { grpcMessageTimeout } = this.#options.limits
    const details = `The request was not complete after ${grpcMessageTimeout} s (grpc_message_timeout)`
    for (const reader of this.#readers) reader.sweep((grpcMessageTimeout * 1_000) / SWEEP_MS, details)
    if (this.#readers.size > 0) return
    clearInterval(this.#sweeper)
    this.#sweeper = undefined
  }
}

function rpcsOf(served: readonly ServedService[]): ReadonlyMap<string, Rpc> {
  const rpcs = new Map<string, Rpc>()
  for (const { service, access } of served) {
    for (const [name, { path, requestStream }] of Object.entries(service.definition)) {
      rpcs.set(path, { ...access(name), isStream: requestStream })
    }
  }
  return rpcs
}

function sizeOf(rawHeaders: readonly string[]): number {
  let bytes = (rawHeaders.length / 2) * HEADER_BYTES
  for (const text of rawHeaders) bytes += text.length
  return bytes
}

import type { IncomingHttpHeaders, Http2Session, ServerHttp2Stream } from 'node:http2'
import { status as Status, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'
import { TimeLimit } from '../../jobs/time-limit.ts'
import type { Tracing } from '../../observe/traces/tracing.ts'
import { type AuditLog, refusalOf } from '../../observe/logs/audit-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import { ServeError } from '../../../common/errors.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import { Decompressor } from './message-bytes.ts'
import { type CallError, retryMetadata } from './call-error.ts'
import { traceCall } from './call-trace.ts'
import { type CallDeps, GrpcCall, setCall } from './call.ts'
import { Connection } from './connection.ts'
import {
  CALL_BYTES,
  type GrpcLimits,
  type GrpcTimes,
  MAX_METADATA_BYTES,
  metadataBytesOf,
  PUBLIC_MESSAGE_BYTES,
  UNAUTHORIZED_BYTES,
} from './limits.ts'
import type { ReaderLimits, ReaderRpc } from './message-reader.ts'
import { closeWhenSent, RequestReader } from './request-reader.ts'
import type { Rpc } from './definitions.ts'

/** What grpc-js does with a stream. */
export type StreamTaker = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  flags: number,
  rawHeaders: readonly string[],
) => void

type GatedRpc = Rpc & ReaderRpc

/** Where a call goes that the gate lets through. */
export interface Doors {
  /** How grpc-js takes a stream. */
  readonly letIn: StreamTaker
  readonly called: (session: Http2Session) => void
}

interface CallGateOptions extends CallDeps {
  readonly limits: GrpcLimits
  /** Undefined: it is not written. */
  readonly audit: AuditLog | undefined
  /** Undefined: refusals are not counted. */
  readonly refusals: Pick<Refusals, 'count'> | undefined
  /** Undefined: tracing is off. */
  readonly tracing: Tracing | undefined
  readonly admission: ClientAdmission
  readonly times: GrpcTimes
}

/**
 * Lets calls in when their metadata is there: before anything of a message is read, and before grpc-js knows
 * of them. What it lets in reads its request through a RequestReader.
 */
export class CallGate {
  /**
   * Tells the gate which call grpc-js has made for a stream; must be the last one of its interceptors, which
   * is the outermost.
   */
  readonly interceptor: ServerInterceptor
  readonly #options: CallGateOptions
  readonly #rpcs: ReadonlyMap<string, GatedRpc>
  readonly #readerLimits: ReaderLimits
  readonly #idle: TimeLimit
  readonly #connections = new WeakMap<Http2Session, Connection>()
  #admitted: RequestReader | undefined

  constructor(rpcs: readonly Rpc[], options: CallGateOptions) {
    const { limits, times } = options
    this.#options = options
    this.#rpcs = gated(rpcs, limits.maxRequestSize)
    this.#readerLimits = {
      maxElements: limits.maxRequestElements,
      decompressor: new Decompressor(limits.maxRequestSize),
      time: new TimeLimit(times.messageMs, 'REQUEST_TIMEOUT', 'the request was not complete', ''),
    }
    this.#idle = new TimeLimit(times.idleMs, 'REQUEST_TIMEOUT', 'the connection was idle', '')
    this.interceptor = (_method, call) => {
      const outermost = call instanceof ServerInterceptingCall ? call : new ServerInterceptingCall(call)
      if (this.#admitted === undefined) return outermost
      this.#admitted.surface = call
      setCall(outermost, this.#admitted.call)
      return outermost
    }
  }

  /** Takes a new stream. */
  take(
    doors: Doors,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: readonly string[],
  ): void {
    const { session } = stream
    if (session === undefined) return
    const work = this.#options.authorizer.prepare?.(headers.authorization, session.socket)
    if (work === undefined) {
      this.#take(doors, stream, headers, flags, rawHeaders)
      return
    }
    // Nothing of it is read meanwhile, and a client that leaves is no error.
    const ignore = (): void => undefined
    stream.on('error', ignore)
    void work.then(() => {
      stream.off('error', ignore)
      this.#take(doors, stream, headers, flags, rawHeaders)
    })
  }

  #take(
    { letIn, called }: Doors,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    flags: number,
    rawHeaders: readonly string[],
  ): void {
    const session = stream.session
    if (session === undefined || stream.destroyed) return
    const connection = this.#connectionOf(session)
    const path = headers[':path'] ?? ''
    const rpc = this.#rpcs.get(path)
    const call = new GrpcCall(this.#options, stream, path, connection)
    if (rpc === undefined) {
      // grpc-js has the answer to it, and reads nothing.
      stream.once('close', () => call.closed())
      letIn(stream, headers, flags, rawHeaders)
      connection.countRefusal()
      return
    }
    const metadataBytes = metadataBytesOf(rawHeaders)
    const refusal = repeatsToken(rawHeaders)
      ? TWO_TOKENS
      : this.#refusalOf(call, rpc, headers, metadataBytes, connection)
    if (refusal !== undefined) {
      this.#refuse(stream, path, refusal, connection)
      return
    }
    const callBytes = CALL_BYTES + metadataBytes
    const reader = new RequestReader(call, stream, headers, rpc, this.#readerLimits, connection, callBytes)
    const { tracing } = this.#options
    // grpc.health.v1 and reflection need no token.
    if (tracing !== undefined && rpc.token !== undefined)
      call.span = traceCall(tracing, stream, headers, path)
    this.#admitted = reader
    try {
      letIn(stream, headers, flags, rawHeaders)
    } finally {
      this.#admitted = undefined
    }
    if (reader.surface !== undefined) reader.attach()
    called(session)
  }

  /** Why a call is refused. Undefined: it is let in, and its room is taken. */
  #refusalOf(
    call: GrpcCall,
    rpc: GatedRpc,
    headers: IncomingHttpHeaders,
    metadataBytes: number,
    connection: Connection,
  ): CallError | undefined {
    if (metadataBytes > MAX_METADATA_BYTES) {
      const details = `Metadata must have at most ${MAX_METADATA_BYTES} bytes`
      return { code: Status.RESOURCE_EXHAUSTED, details }
    }
    if (rpc.token !== undefined) {
      try {
        call.authorize(rpc.token, headers)
      } catch (thrown) {
        return this.#countRefusal(call, rpc, headers, ServeError.from(thrown))
      }
      this.#accept(connection)
    } else if (!connection.mayCallPublicly()) {
      const details = 'Too many calls without a token came at once; make fewer of them at a time'
      return { code: Status.RESOURCE_EXHAUSTED, details }
    }
    if (connection.requests.take(CALL_BYTES + metadataBytes) === undefined) return undefined
    return { code: Status.RESOURCE_EXHAUSTED, details: 'Too many calls are open; end some of them first' }
  }

  /** In the metrics, and in the audit log. */
  #countRefusal(
    call: GrpcCall,
    rpc: GatedRpc,
    { authorization }: IncomingHttpHeaders,
    error: ServeError,
  ): CallError {
    const answer = rpc.toCallError(error)
    this.#options.refusals?.count(error, authorization)
    this.#options.audit?.write({
      ...refusalOf(error, authorization),
      operation: call.path,
      status: answer.code,
      address: call.address,
      protocol: 'grpc',
    })
    return { ...answer, retryAfterMs: error.retryAfterMs }
  }

  #refuse(
    stream: ServerHttp2Stream,
    path: string,
    { code, details, retryAfterMs }: CallError,
    connection: Connection,
  ): void {
    this.#options.accessLog?.grpc(connection.peer, path, code, Date.now())
    stream.on('error', () => undefined)
    const headers = {
      ':status': 200,
      'content-type': 'application/grpc+proto',
      'grpc-status': code,
      'grpc-message': encodeURI(details),
      ...(retryAfterMs !== undefined && retryMetadata(retryAfterMs)),
    }
    // Node closes a stream that nobody has looked at, however far its answer is.
    stream.pause()
    stream.respond(headers, { endStream: true })
    // A paused stream would stay for as long as its connection, and a drain would wait for it.
    closeWhenSent(stream)
    connection.countRefusal()
  }

  #connectionOf(session: Http2Session): Connection {
    let connection = this.#connections.get(session)
    if (connection === undefined) {
      connection = new Connection(session, this.#idle, this.#options.admission)
      connection.requests.limit = UNAUTHORIZED_BYTES
      if (this.#asksForNothing()) this.#accept(connection)
      this.#connections.set(session, connection)
    }
    return connection
  }

  #accept(connection: Connection): void {
    if (connection.accepted) return
    connection.accepted = true
    connection.requests.limit = Infinity
  }

  /** Whether who brings no token may do everything. */
  #asksForNothing(): boolean {
    try {
      this.#options.authorizer.check('inference', undefined)
      return true
    } catch {
      return false
    }
  }
}

const TWO_TOKENS: CallError = {
  code: Status.INVALID_ARGUMENT,
  details: 'The metadata authorization must not be repeated',
}

/** Node keeps the first of two; a proxy may have checked the other. Names are in lower case. */
function repeatsToken(rawHeaders: readonly string[]): boolean {
  let count = 0
  for (let i = 0; i < rawHeaders.length; i += 2) if (rawHeaders[i] === 'authorization') count++
  return count > 1
}

function gated(rpcs: readonly Rpc[], maxRequestSize: number): ReadonlyMap<string, GatedRpc> {
  const publicSize = Math.min(maxRequestSize, PUBLIC_MESSAGE_BYTES)
  return new Map(
    rpcs.map((rpc) => {
      return [rpc.path, { ...rpc, maxMessage: rpc.token === undefined ? publicSize : maxRequestSize }]
    }),
  )
}

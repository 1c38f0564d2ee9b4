import type { IncomingHttpHeaders, Http2Session, ServerHttp2Stream } from 'node:http2'
import { status as Status, ServerInterceptingCall, type ServerInterceptor } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { TimeLimit } from '../../jobs/time-limit.ts'
import type { Authorizer, Client } from '../../auth/authorizer.ts'
import { NOBODY, type Principal, type Scope } from '../../auth/principal.ts'
import { type RateLimiter, Visit } from '../../auth/rate-limiter.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { AuditLog } from '../../observe/logs/audit-log.ts'
import { ByteBudget } from './byte-budget.ts'
import { Decompressor } from './decompressor.ts'
import type { CallError } from './call-error.ts'
import { closeWhenSent } from './close-when-sent.ts'
import { CallTraffic } from './call-traffic.ts'
import { setPrincipal } from './caller.ts'
import { CALL_BYTES, connectionBytes, listenerBytes, MAX_REFUSED_CALLS } from './limits.ts'
import { PUBLIC_MESSAGE_BYTES, UNAUTHORIZED_BYTES, type GrpcLimits } from './limits.ts'
import { RequestReader, type ReaderLimits, type ReaderRpc } from './request-reader.ts'
import type { Rpc } from './service.ts'

const NGHTTP2_ENHANCE_YOUR_CALM = 11
/** What a header counts beside its name and value (RFC 9113, 6.5.2). */
const HEADER_BYTES = 32

/** What grpc-js does with a stream. */
export type StreamTaker = (
  stream: ServerHttp2Stream,
  headers: IncomingHttpHeaders,
  ...rest: unknown[]
) => void

type GatedRpc = Rpc & ReaderRpc

/** Whoever can connect may make the call. */
const LET_IN: LetIn = { principal: NOBODY, visit: undefined, traffic: undefined }

/** What is known of a connection. */
interface Connection {
  readonly budget: ByteBudget
  /** Calls that were refused while it was not accepted. */
  refused: number
  /** One of its calls brought a token that is right, or the server asks for none. */
  accepted: boolean
}

/** Where a call goes that the gate lets through. */
interface Doors {
  /** Gives the stream to grpc-js. */
  readonly letIn: () => void
  readonly called: (session: Http2Session) => void
}

/** A call that may be let in. */
interface NewCall {
  readonly stream: ServerHttp2Stream
  readonly rpc: GatedRpc
  readonly connection: Connection
  readonly headers: IncomingHttpHeaders
  /** What it counts, before any message. */
  readonly bytes: number
  readonly letIn: () => void
}

interface CallGateOptions {
  readonly authorizer: Authorizer
  readonly limits: GrpcLimits
  readonly accessLog: AccessLog | undefined
  /** Undefined: it is not written. */
  readonly audit: AuditLog | undefined
  /** Undefined: nothing is limited. */
  readonly limiter: RateLimiter | undefined
}

/** Who makes a call that may be let in, and what it uses of limits. */
interface LetIn {
  readonly principal: Principal
  readonly visit: Visit | undefined
  readonly traffic: CallTraffic | undefined
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
  readonly #whole: ByteBudget
  readonly #readerLimits: ReaderLimits
  readonly #connections = new WeakMap<Http2Session, Connection>()
  #admitted: (LetIn & { readonly reader: RequestReader }) | undefined

  constructor(rpcs: readonly Rpc[], options: CallGateOptions) {
    const { limits } = options
    this.#options = options
    this.#rpcs = gated(rpcs, limits.maxRequestSize)
    this.#whole = new ByteBudget(listenerBytes(limits))
    this.#readerLimits = {
      decompressor: new Decompressor(limits.maxRequestSize, limits.grpcMaxDecompressionRatio),
      time: new TimeLimit(
        limits.grpcMessageTimeout * 1_000,
        'REQUEST_TIMEOUT',
        'the request was not complete',
        'grpc_message_timeout',
      ),
    }
    this.interceptor = (_method, call) => {
      const outermost = call instanceof ServerInterceptingCall ? call : new ServerInterceptingCall(call)
      if (this.#admitted === undefined) return outermost
      this.#admitted.reader.call = call
      setPrincipal(outermost, this.#admitted.principal, this.#admitted.visit)
      return outermost
    }
  }

  /** Bytes that calls and unfinished messages of all connections count now. */
  get waitingBytes(): number {
    return this.#whole.taken
  }

  /**
   * Takes a new stream; `letIn` gives it to grpc-js. When it is a call that was let in, `called` hears of it.
   */
  take(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    doors: Doors,
  ): void {
    const work = this.#options.authorizer.prepare?.(headers.authorization, stream.session?.socket)
    if (work === undefined) {
      this.#take(stream, headers, rawHeaders, doors)
      return
    }
    // Nothing of it is read meanwhile, and a client that leaves is no error.
    const ignore = (): void => undefined
    stream.on('error', ignore)
    void work.then(() => {
      stream.off('error', ignore)
      this.#take(stream, headers, rawHeaders, doors)
    })
  }

  #take(
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    rawHeaders: readonly string[],
    { letIn, called }: Doors,
  ): void {
    const session = stream.session
    if (session === undefined || stream.destroyed) return
    const connection = this.#connectionOf(session)
    const path = headers[':path'] ?? ''
    const rpc = this.#rpcs.get(path)
    if (rpc === undefined) {
      // grpc-js has the answer to it, and reads nothing.
      letIn()
      this.#countRefusal(connection, session)
      return
    }
    const metadataBytes = sizeOf(rawHeaders)
    const caller = this.#callerOf(rpc, stream, headers, metadataBytes, connection)
    if ('code' in caller) {
      this.#refuse(stream, path, caller)
      this.#countRefusal(connection, session)
      return
    }
    this.#read({ stream, rpc, connection, headers, bytes: CALL_BYTES + metadataBytes, letIn }, caller)
    called(session)
  }

  /** Who makes the call; its room is taken then. Or why it is refused. */
  #callerOf(
    rpc: GatedRpc,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    metadataBytes: number,
    connection: Connection,
  ): LetIn | CallError {
    const { limits } = this.#options
    if (metadataBytes > limits.grpcMaxMetadataSize) {
      const details = `Metadata must have at most ${limits.grpcMaxMetadataSize} bytes (grpc_max_metadata_size)`
      return { code: Status.RESOURCE_EXHAUSTED, details }
    }
    let caller: LetIn = LET_IN
    if (rpc.token !== undefined) {
      try {
        caller = this.#identify(rpc.token, stream, headers.authorization)
      } catch (thrown) {
        return this.#refusal(rpc, stream, headers, ServeError.from(thrown))
      }
      this.#accept(connection)
    }
    if (connection.budget.take(CALL_BYTES + metadataBytes)) return caller
    return { code: Status.RESOURCE_EXHAUSTED, details: 'Too many calls are open; end some of them first' }
  }

  /** @throws ServeError UNAUTHORIZED, RATE_LIMITED */
  #identify(scope: Scope, stream: ServerHttp2Stream, authorization: string | undefined): LetIn {
    const { authorizer, limiter } = this.#options
    const client: Client = stream.session?.socket ?? {}
    const check = (): Principal => authorizer.check(scope, authorization, client)
    if (limiter === undefined) return { ...LET_IN, principal: check() }
    const traffic = new CallTraffic()
    const visit = new Visit(limiter, traffic)
    try {
      visit.from(client.remoteAddress)
      const principal = check()
      visit.by(principal)
      if (!visit.counts) return { ...LET_IN, principal }
      stream.once('close', () => visit.end())
      return { principal, visit, traffic }
    } catch (thrown) {
      visit.end()
      throw thrown
    }
  }

  #refusal(
    { toCallError }: GatedRpc,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    error: ServeError,
  ): CallError {
    const answer = toCallError(error)
    const isLimit = error.code === 'RATE_LIMITED'
    this.#options.audit?.write({
      event: isLimit ? 'limit' : 'authentication',
      operation: headers[':path'] ?? '',
      outcome: 'refused',
      code: error.code,
      status: answer.code,
      address: stream.session?.socket.remoteAddress,
      protocol: 'grpc',
      detail: isLimit ? error.message : headers.authorization === undefined ? 'no token' : 'not accepted',
    })
    return { ...answer, retryAfterMs: error.retryAfterMs }
  }

  #read({ stream, rpc, connection, headers, bytes, letIn }: NewCall, caller: LetIn): void {
    const encoding = headers['grpc-encoding']
    const { budget } = connection
    const reader = new RequestReader(stream, encoding, rpc, this.#readerLimits, budget, bytes)
    if (caller.traffic !== undefined) {
      reader.traffic = caller.traffic
      caller.traffic.countWrites(stream)
    }
    this.#admitted = { ...caller, reader }
    try {
      letIn()
    } finally {
      this.#admitted = undefined
    }
    if (reader.call !== undefined) reader.attach()
  }

  #refuse(stream: ServerHttp2Stream, path: string, { code, details, retryAfterMs }: CallError): void {
    const { remoteAddress, remotePort } = stream.session?.socket ?? {}
    this.#options.accessLog?.grpc(`${remoteAddress}:${remotePort}`, path, code, Date.now())
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
  }

  #countRefusal(connection: Connection, session: Http2Session): void {
    if (connection.accepted || ++connection.refused < MAX_REFUSED_CALLS) return
    // At once: hundreds of calls may have come with the same read of the socket.
    session.destroy(new Error('No call of this connection was let in'), NGHTTP2_ENHANCE_YOUR_CALM)
  }

  #connectionOf(session: Http2Session): Connection {
    let connection = this.#connections.get(session)
    if (connection === undefined) {
      const budget = new ByteBudget(UNAUTHORIZED_BYTES, this.#whole)
      connection = { budget, refused: 0, accepted: false }
      if (this.#asksForNothing()) this.#accept(connection)
      this.#connections.set(session, connection)
    }
    return connection
  }

  #accept(connection: Connection): void {
    if (connection.accepted) return
    connection.accepted = true
    connection.budget.limit = connectionBytes(this.#options.limits)
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

/** What gRPC's own retries obey (gRFC A6), and what those who know HTTP look for. */
function retryMetadata(afterMs: number): Record<string, string> {
  return {
    'grpc-retry-pushback-ms': String(afterMs),
    'retry-after': String(Math.max(1, Math.ceil(afterMs / 1_000))),
  }
}

function gated(rpcs: readonly Rpc[], maxRequestSize: number): ReadonlyMap<string, GatedRpc> {
  const publicSize = Math.min(maxRequestSize, PUBLIC_MESSAGE_BYTES)
  return new Map(
    rpcs.map((rpc) => {
      return [rpc.path, { ...rpc, maxMessage: rpc.token === undefined ? publicSize : maxRequestSize }]
    }),
  )
}

function sizeOf(rawHeaders: readonly string[]): number {
  let bytes = (rawHeaders.length / 2) * HEADER_BYTES
  for (const text of rawHeaders) bytes += text.length
  return bytes
}

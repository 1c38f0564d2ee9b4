import { lookup } from 'node:dns/promises'
import { EventEmitter } from 'node:events'
import type { Http2SecureServer, Http2Server } from 'node:http2'
import { Server, ServerCredentials, type ServerOptions } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/gatekeeper.ts'
import type { RateLimiter } from '../../auth/rate-limiter.ts'
import { hostAndPort, LISTEN_FAILURES } from '../../config/listen-address.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { AuditLog } from '../../observe/logs/audit-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { Tracing } from '../../observe/traces/tracing.ts'
import type { Operations } from '../call.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { ConnectionPool } from '../admission/connection-pool.ts'
import { CallGate, type Doors, type StreamTaker } from './call-gate.ts'
import { ConnectionGate } from './connection.ts'
import { type GrpcLimits, type GrpcTimes, SESSION_MEGABYTES } from './limits.ts'
import { type GrpcService, rpcsOf } from './definitions.ts'

/**
 * The HTTP/2 servers that a grpc-js server listens with. The only place that reads a private field of
 * grpc-js, which has no other way to its connections and streams. @throws Error when it has no such field any
 * more
 */
export function http2ServersOf(server: Server): readonly (Http2Server | Http2SecureServer)[] {
  const servers: unknown = server['http2Servers']
  const found = servers instanceof Map ? [...(servers as Map<unknown, unknown>).keys()] : []
  if (found.length === 0 || !found.every((each) => each instanceof EventEmitter)) {
    throw new Error(
      'This version of @grpc/grpc-js does not keep its HTTP/2 servers in `http2Servers`; use 1.14',
    )
  }
  return found as (Http2Server | Http2SecureServer)[]
}

/** Where a listener really listens. */
export interface BoundAddress {
  /** An IP address, IPv6 without brackets. */
  readonly host: string
  readonly port: number
}

/** Private key and certificate chain of the server, as PEM. */
export interface GrpcTls {
  readonly key: Buffer
  readonly cert: Buffer
  /** OpenSSL's list of the suites that are offered. */
  readonly ciphers: string
  /** CA of the certificates that clients are asked for; absent: none are. */
  readonly ca?: Buffer
  /** Whether they may come without one. */
  readonly rejectUnauthorized?: boolean
  /** Options of OpenSSL. */
  readonly secureOptions?: number
}

interface GrpcListenerOptions {
  /** Tells the listeners apart in errors. */
  readonly name: string
  /** The configuration key of its port, for the same. */
  readonly setting: string
  readonly services: readonly GrpcService[]
  readonly operations: Operations
  readonly authorizer: Authorizer
  readonly limits: GrpcLimits
  readonly accessLog: AccessLog | undefined
  readonly audit: AuditLog | undefined
  readonly limiter: RateLimiter | undefined
  readonly refusals: Pick<Refusals, 'count'> | undefined
  readonly tracing: Tracing | undefined
  readonly admission: ClientAdmission
  readonly times: GrpcTimes
  readonly grpc: ServerOptions
  /** Limits its connections together with those of other listeners. */
  readonly pool: ConnectionPool | undefined
}

/**
 * Node resets a call with more metadata without a status (nghttp2 takes no more than this). What has less,
 * the gate can answer.
 */
const HEADER_LIST_BYTES = 65_535

/** One gRPC server on one address. Its connections and calls pass its gates before grpc-js sees them. */
export class GrpcListener {
  readonly calls: CallGate
  readonly connections: ConnectionGate
  readonly #server: Server
  readonly #name: string
  readonly #setting: string
  readonly #limits: GrpcLimits

  constructor({ name, setting, services, grpc, pool, ...gate }: GrpcListenerOptions) {
    const { limits } = gate
    this.#name = name
    this.#setting = setting
    this.#limits = limits
    this.calls = new CallGate(rpcsOf(services), gate)
    this.connections = new ConnectionGate(pool, gate.admission.cuts)
    this.#server = new Server({
      ...grpc,
      // Nobody reads its counters and time stamps of each call and message.
      'grpc.enable_channelz': 0,
      'grpc-node.max_session_memory': SESSION_MEGABYTES,
      'grpc.max_concurrent_streams': limits.grpcMaxConcurrentStreams,
      interceptors: [...(grpc.interceptors ?? []), this.calls.interceptor],
    })
    for (const { definition, implementation } of services) {
      this.#server.addService(definition.definition, implementation)
    }
  }

  /**
   * Starts to listen, with TLS if there is a key; port 0 takes any free one. A host name stands for its first
   * address only: grpc-js would try all and be content with one, so a taken port could go unnoticed. @throws
   * ServeError CONFIG
   */
  async listen(host: string, port: number, tls: GrpcTls | undefined): Promise<BoundAddress> {
    try {
      const { address } = await lookup(host)
      return { host: address, port: await this.#bind(hostAndPort(address, port), tls) }
    } catch (cause) {
      throw new ServeError(
        'CONFIG',
        `The ${this.#name} listener cannot use ${host}:${port} (${this.#setting}): ${reason(cause)}`,
        { cause },
      )
    }
  }

  /** No new connections or calls; resolves when the running calls have ended. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.tryShutdown(() => resolve())
    })
  }

  /** Breaks every connection now. */
  forceShutdown(): void {
    this.#server.forceShutdown()
    this.connections.breakAll()
  }

  #bind(address: string, tls: GrpcTls | undefined): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.bindAsync(address, credentialsFor(tls), (error, bound) => {
        try {
          if (error !== null) throw error
          for (const server of http2ServersOf(this.#server)) {
            // grpc-js takes suites from a variable of the environment only.
            if (tls !== undefined && 'setSecureContext' in server)
              server.setSecureContext({ ...tls, minVersion: 'TLSv1.2' })
            this.#guard(server)
          }
          resolve(bound)
        } catch (thrown) {
          reject(thrown instanceof Error ? thrown : new Error(String(thrown)))
        }
      })
    })
  }

  #guard(server: Http2Server | Http2SecureServer): void {
    this.connections.guard(server)
    server.updateSettings({
      maxConcurrentStreams: this.#limits.grpcMaxConcurrentStreams,
      maxHeaderListSize: HEADER_LIST_BYTES,
    })
    const takers = server.listeners('stream') as StreamTaker[]
    server.removeAllListeners('stream')
    const doors: Doors = {
      letIn: (stream, headers, flags, rawHeaders) => {
        for (const taker of takers) taker.call(server, stream, headers, flags, rawHeaders)
      },
      called: (session) => this.connections.called(session),
    }
    const take: StreamTaker = (stream, headers, flags, rawHeaders) => {
      this.calls.take(doors, stream, headers, flags, rawHeaders)
    }
    server.on('stream', take)
  }
}

/** Clients need no certificate of their own, as in TorchServe, unless there is a CA for them. */
function credentialsFor(tls: GrpcTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  return new TlsCredentials(tls)
}

/** Those of grpc-js cannot ask for a certificate and do without. */
class TlsCredentials extends ServerCredentials {
  constructor({ key, cert, ca, rejectUnauthorized }: GrpcTls) {
    super({ requestCert: ca !== undefined, rejectUnauthorized }, { key, cert, ca })
  }

  override _isSecure(): boolean {
    return true
  }

  override _equals(other: ServerCredentials): boolean {
    return this === other
  }
}

/** grpc-js keeps the system's error only as text: `No address added ... errors: [listen EADDRINUSE: ...]`. */
function reason(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  const code = /\bE[A-Z]{3,}\b/.exec(message)?.[0] ?? ''
  return LISTEN_FAILURES.get(code) ?? message
}

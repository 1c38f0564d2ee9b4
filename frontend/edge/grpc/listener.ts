import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { Server, ServerCredentials, type ServerOptions } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'

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
}

/** One gRPC server on one address. */
export class GrpcListener {
  readonly server: Server
  readonly #name: string

  /** `name` tells the listeners apart in errors. */
  constructor(name: string, options: ServerOptions) {
    this.#name = name
    this.server = new Server(options)
  }

  /**
   * Starts to listen, with TLS if there is a key; port 0 takes any free one. A host name stands for its first address only: grpc-js would try them
   * all and be content with one, so a taken port could go unnoticed. @throws ServeError CONFIG
   */
  async listen(host: string, port: number, tls: GrpcTls | undefined): Promise<BoundAddress> {
    try {
      const { address } = await lookup(host)
      const bracketed = isIPv6(address) ? `[${address}]` : address
      return { host: address, port: await this.#bind(`${bracketed}:${port}`, credentialsFor(tls)) }
    } catch (cause) {
      throw new ServeError(
        'CONFIG',
        `The ${this.#name} listener cannot use ${host}:${port}: ${reason(cause)}`,
        { cause },
      )
    }
  }

  /** No new connections or calls; resolves when the running calls have ended. */
  drain(): Promise<void> {
    return new Promise((resolve) => {
      this.server.tryShutdown(() => resolve())
    })
  }

  /** Breaks every connection now. Needs grpc-js's channelz: without it, 1.14 does not find the connections. */
  forceShutdown(): void {
    this.server.forceShutdown()
  }

  #bind(address: string, credentials: ServerCredentials): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.bindAsync(address, credentials, (error, bound) => {
        if (error === null) resolve(bound)
        else reject(error)
      })
    })
  }
}

/** Clients need no certificate of their own, as in TorchServe. */
function credentialsFor(tls: GrpcTls | undefined): ServerCredentials {
  if (tls === undefined) return ServerCredentials.createInsecure()
  return ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }], false)
}

const REASONS: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'the address is already in use'],
  ['EACCES', 'permission denied'],
  ['EADDRNOTAVAIL', 'this machine does not have that address'],
  ['ENOTFOUND', 'the host name is unknown'],
])

/** grpc-js keeps the system's error only as text: `No address added ... errors: [listen EADDRINUSE: ...]`. */
function reason(cause: unknown): string {
  const message = cause instanceof Error ? cause.message : String(cause)
  const code = /\bE[A-Z]{3,}\b/.exec(message)?.[0] ?? ''
  return REASONS.get(code) ?? message
}

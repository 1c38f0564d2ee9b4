import { unlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect, type Socket } from 'node:net'
import type { SecureContextOptions, TlsOptions } from 'node:tls'
import { ServeError } from '../../../common/errors.ts'
import { formatListenAddress, type ListenAddress, LISTEN_FAILURES } from '../../config/listen-address.ts'
import type { RestApp } from './app.ts'
import type { ConnectionPool } from '../admission/connection-pool.ts'
import { acceptTlsOnly, answerClientError, refuseConnection } from './bare-answer.ts'
import { SafeResponse } from './safe-response.ts'
import { cutUnexplained } from '../unexplained-bytes.ts'
import { MAX_HEAD_BYTES, ServerRequest } from './server-request.ts'

/**
 * Limits of the head (a request line of 4 KiB and headers of 8 KiB, as in TorchServe), and of the time in
 * which a request must arrive. Responses are limited by their jobs.
 */
const LIMITS = {
  // A request without Host is answered as all others are (request-head.ts).
  requireHostHeader: false,
  maxHeaderSize: MAX_HEAD_BYTES,
  headersTimeout: 20_000,
  requestTimeout: 120_000,
  keepAliveTimeout: 65_000,
  connectionsCheckingInterval: 5_000,
}

/** What Node makes of requests and of their responses. */
export const MESSAGES = { IncomingMessage: ServerRequest, ServerResponse: SafeResponse }

/** A running REST listener. */
export interface Listener {
  /** `http://127.0.0.1:8080`, `https://127.0.0.1:8443` or `unix:/path`. */
  readonly address: string
  /** 0 for a Unix socket. */
  readonly port: number
  /** Refuses new connections and requests; resolves when the last connection has ended. */
  close(): Promise<void>
  /** Ends all connections at once, and accepts no more. */
  destroyAll(): void
}

export interface ListenOptions {
  /** Key and certificate; an https address needs them. */
  readonly tls?: (SecureContextOptions & Pick<TlsOptions, 'requestCert' | 'rejectUnauthorized'>) | undefined
  /** Its connections count there; default: they are not limited. */
  readonly pool?: ConnectionPool
  /** What sets the address, for error messages: a configuration key, or a flag. */
  readonly setting?: string
}

/** TLS 1.2, TorchServe's only version, and 1.3. */
const TLS_VERSIONS = { minVersion: 'TLSv1.2', maxVersion: 'TLSv1.3' } as const

/**
 * Starts a REST listener; error messages call it `name` (such as `inference`).
 * @throws ServeError CONFIG with one line when it cannot listen there
 */
export async function listen(
  name: string,
  address: ListenAddress,
  app: RestApp,
  { tls, pool, setting }: ListenOptions = {},
): Promise<Listener> {
  const server = isTls(address)
    ? createTlsServer({ ...LIMITS, ...TLS_VERSIONS, ...tls, ...MESSAGES })
    : createServer({ ...LIMITS, ...MESSAGES })
  if (isTls(address)) acceptTlsOnly(server, app.state)
  const sockets = new Set<Socket>()
  // Their bytes are limited. One that Node leaves out could not be checked.
  server.maxHeadersCount = 0
  server.on('request', app.listener)
  server.on('checkContinue', app.listener)
  server.on('checkExpectation', app.expectation)
  server.on('clientError', (error, socket) => answerClientError(app.state, error, socket))
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  server.on(isTls(address) ? 'secureConnection' : 'connection', (socket: Socket) => {
    cutUnexplained(socket, socket, () => {
      app.state.admission.cuts.tell('unexplained', socket)
      socket.destroy()
    })
  })
  await bind(server, address, (error) => refused(name, address, setting, error))
  pool?.guard(server, (socket) => refuseConnection(app.state, socket, isTls(address)))
  const { text, port } = bound(server, address)
  return {
    address: text,
    port,
    close: () => close(server, sockets, app),
    destroyAll: () => {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

function isTls(address: ListenAddress): boolean {
  return address.kind === 'tcp' && address.tls
}

function close(server: Server, sockets: Set<Socket>, app: RestApp): Promise<void> {
  app.beginDrain()
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
    // Node counts a connection that never sent a byte as busy.
    for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
  })
}

async function bind(
  server: Server,
  address: ListenAddress,
  refusal: (why: unknown) => ServeError,
): Promise<void> {
  try {
    await tryListen(server, address)
  } catch (error) {
    if (address.kind !== 'unix' || !(await isStale(error, address.path))) throw refusal(error)
    unlinkSync(address.path)
    await tryListen(server, address).catch((again: unknown) => {
      throw refusal(again)
    })
  }
}

function tryListen(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    const target =
      address.kind === 'unix' ? { path: address.path } : { host: address.host, port: address.port }
    server.listen(target, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
}

/** Whether a socket file is a leftover: the file exists, but nobody accepts connections. */
function isStale(error: unknown, path: string): Promise<boolean> {
  if (codeOf(error) !== 'EADDRINUSE') return Promise.resolve(false)
  return new Promise((resolve) => {
    const probe = connect(path)
    probe.once('connect', () => {
      probe.destroy()
      resolve(false)
    })
    probe.once('error', (refused) => resolve(codeOf(refused) === 'ECONNREFUSED'))
  })
}

function refused(
  name: string,
  address: ListenAddress,
  setting: string | undefined,
  error: unknown,
): ServeError {
  const code = codeOf(error) ?? 'unknown error'
  const why = LISTEN_FAILURES.get(code) ?? code
  const by = setting === undefined ? '' : ` (${setting})`
  const where = `${formatListenAddress(address)}${by}`
  return new ServeError('CONFIG', `The ${name} listener cannot use ${where}: ${why}`, { cause: error })
}

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}

function bound(server: Server, address: ListenAddress): { text: string; port: number } {
  const port = address.kind === 'tcp' ? (server.address() as AddressInfo).port : 0
  return { text: formatListenAddress(address, port), port }
}

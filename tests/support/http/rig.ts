import { afterEach } from '@jest/globals'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { ServeError } from '../../../common/errors.ts'
import { ANYBODY } from '../../../frontend/auth/principal.ts'
import type { RestApp, RestDeps } from '../../../frontend/edge/http/app.ts'
import { JobIndex } from '../../../frontend/jobs/open-jobs.ts'
import { Viewers } from '../../../frontend/watch/viewers.ts'
import { listen, type Listener } from '../../../frontend/edge/http/server.ts'
import type { ListenAddress } from '../../../frontend/config/listen-address.ts'
import { Refusals } from '../../../frontend/observe/metrics/refusals.ts'
import { testAdmission } from '../admission.ts'
import { CERT, KEY } from '../tls/files.ts'
import { nothingToWatch } from '../nothing-to-watch.ts'
import { FakeWorkflows } from '../fake-workflows.ts'
import { FakeModels } from './fake-models.ts'

export const TCP = { kind: 'tcp', tls: false, host: '127.0.0.1', port: 0 } satisfies ListenAddress

/** https on a free port, with the tests' certificate. */
export const TLS = { ...TCP, tls: true } satisfies ListenAddress

export interface Rig {
  models: FakeModels
  workflows: FakeWorkflows
  listener: Listener
  app: RestApp
  deps: RestDeps
  /** Statuses that were counted. */
  statuses: number[]
  /** What went to the log. */
  logged: unknown[]
  rotated: [string | undefined, string | undefined][]
}

export interface RigOptions {
  maxRequestSize?: number
  maxRequestElements?: number
  enableModelApi?: boolean
  openInferenceProtocol?: boolean
  cors?: string
  corsAllowedHeaders?: string
  corsExposedHeaders?: string
  /** With tokens on, a request needs `Bearer <kind>`. */
  tokens?: boolean
  address?: ListenAddress
  metricsRequireToken?: boolean
  audit?: RestDeps['audit']
  limiter?: RestDeps['limiter']
  admission?: Partial<RestDeps['admission']>
  /** In the place of `tokens`. */
  authorizer?: RestDeps['authorizer']
}

/** Tokens are off, and every listener has this address. */
export function pageSettings(address: ListenAddress = TCP) {
  return {
    allowedHosts: [],
    checkInferenceOrigin: true,
    disableTokenAuthorization: true,
    inferenceAddress: address,
    managementAddress: address,
    metricsAddress: address,
  }
}

const cleanups: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup()
})

/** A listener of its own on a free port, closed after the test. */
export async function startRig(
  create: (deps: RestDeps) => RestApp,
  { tokens, cors, address = TCP, ...options }: RigOptions = {},
): Promise<Rig> {
  const models = new FakeModels()
  const workflows = new FakeWorkflows()
  const statuses: number[] = []
  const logged: unknown[] = []
  const rotated: Rig['rotated'] = []
  const deps: RestDeps = {
    audit: options.audit,
    limiter: options.limiter,
    admission: testAdmission(options.admission),
    models,
    workflows,
    configuration: () => [],
    requests: new JobIndex(),
    events: new Viewers(nothingToWatch()),
    settings: {
      maxRequestSize: options.maxRequestSize ?? 100_000,
      maxRequestElements: options.maxRequestElements ?? 250_000,
      maxResponseSize: 100_000,
      openaiHeartbeatInterval: 0,
      enableConsole: true,
      modelStore: undefined,
      downloadTimeout: 60,
      minFreeDisk: 0,
      enableModelApi: options.enableModelApi ?? true,
      openInferenceProtocol: options.openInferenceProtocol ?? false,
      openInferenceGzip: true,
      corsAllowedOrigin: cors,
      corsAllowedMethods: undefined,
      corsAllowedHeaders: options.corsAllowedHeaders,
      corsExposedHeaders: options.corsExposedHeaders,
      metricsRequireToken: options.metricsRequireToken ?? false,
      ...pageSettings(address),
      ...(tokens && { disableTokenAuthorization: false }),
    },
    authorizer: options.authorizer ?? {
      check(kind, authorization) {
        if (tokens && authorization !== `Bearer ${kind}`) throw new ServeError('UNAUTHORIZED', 'Token failed')
        return ANYBODY
      },
      rotate(kind, authorization) {
        rotated.push([kind, authorization])
        if (kind === 'bad')
          return Promise.reject(new ServeError('INVALID_API_KEY', 'Token Authentication failed'))
        return Promise.resolve()
      },
    },
    metrics: {
      response: (status) => statuses.push(status),
      page: (names = []) => ({ contentType: 'text/plain; version=0.0.4', body: Buffer.from(names.join()) }),
      refusals: new Refusals(),
    },
    log: { error: (...entry) => logged.push(entry), warn: (...entry) => logged.push(entry) },
  }
  const app = create(deps)
  const listener = await listen('inference', address, app, { tls: { key: KEY, cert: CERT } })
  cleanups.push(async () => {
    const closed = listener.close()
    listener.destroyAll()
    await closed
  })
  return { models, workflows, listener, app, deps, statuses, logged, rotated }
}

/** A bare connection whose text arrives in `received`. */
export class Wire {
  readonly socket: Socket
  received = ''
  /** Resolves when the other side has ended the connection. */
  readonly closed: Promise<void>
  #wakers: (() => void)[] = []

  constructor(port: number, { tls = false, ...options }: { allowHalfOpen?: boolean; tls?: boolean } = {}) {
    const target = { port, host: '127.0.0.1', ...options }
    this.socket = tls ? connectTls({ ...target, ca: CERT }) : connect(target)
    this.socket.on('data', (data: Buffer) => {
      this.received += data.toString('latin1')
      this.#wake()
    })
    this.socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => {
      this.socket.once('close', () => {
        resolve()
        this.#wake()
      })
    })
    cleanups.push(async () => {
      this.socket.destroy()
      await this.closed
    })
  }

  send(text: string | Buffer): this {
    this.socket.write(text)
    return this
  }

  /** Sends a request with a body; headers as `Name: value` lines. */
  request(method: string, path: string, body = '', ...headers: string[]): this {
    const lines = [`${method} ${path} HTTP/1.1`, 'Host: test', ...headers]
    if (body !== '') lines.push(`Content-Length: ${Buffer.byteLength(body)}`)
    return this.send(`${lines.join('\r\n')}\r\n\r\n${body}`)
  }

  /** Resolves when the text has arrived; rejects when the connection ends without it. */
  async until(text: string): Promise<string> {
    while (!this.received.includes(text)) {
      if (this.socket.destroyed) throw new Error(`Ended without ${text}: ${this.received}`)
      await new Promise<void>((resolve) => this.#wakers.push(resolve))
    }
    return this.received
  }

  /** Everything until the server has closed the connection. */
  async rest(): Promise<string> {
    await this.closed
    return this.received
  }

  #wake(): void {
    const wakers = this.#wakers
    this.#wakers = []
    for (const wake of wakers) wake()
  }
}

/** The answer as fetch sees it. */
export interface Answer {
  status: number
  headers: Headers
  text: string
  json: () => unknown
}

/** One request over fetch. */
export async function ask(rig: Rig, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${rig.listener.address}${path}`, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown }
}

export const bytes = (text: string): Buffer => Buffer.from(text)

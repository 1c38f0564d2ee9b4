import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type {
  LogEntry,
  ModelOverview,
  OpenRequest,
  OverviewEvent,
  ServerEvents,
} from '../../common/server-events.ts'
import { REPOSITORY } from '../support/server-process.ts'

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
const TYPES: Readonly<Record<string, string>> = {
  'index.html': 'text/html',
  'app.js': 'text/javascript',
  'app.css': 'text/css',
}

/** Serves the built page, with events that a test makes up: states that a real server reaches rarely. */
export class Watched {
  /** Management calls that the page made: `DELETE /requests/1`. */
  readonly calls: string[] = []
  /** Wanted in `authorization`; undefined: none. */
  token: string | undefined
  readonly #server: Server
  readonly #viewers = new Set<ServerResponse>()

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async start(): Promise<Watched> {
    const watched = new Watched()
    await new Promise<void>((resolve) => watched.#server.listen(0, '127.0.0.1', resolve))
    return watched
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/console`
  }

  get viewers(): number {
    return this.#viewers.size
  }

  send<Topic extends keyof ServerEvents>(topic: Topic, data: ServerEvents[Topic]): void {
    this.write(eventBytes(topic, data))
  }

  /** Sends all viewers what may be less or more than an event. */
  write(bytes: Buffer): void {
    for (const viewer of this.#viewers) viewer.write(bytes)
  }

  /** Ends the connections of all viewers. */
  lose(): void {
    for (const viewer of this.#viewers) viewer.destroy()
  }

  stop(): Promise<void> {
    this.lose()
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname } = new URL(request.url!, 'http://any')
    if (pathname.startsWith('/console/play/')) {
      response.writeHead(404, { 'content-type': 'application/json' }).end('{}')
    } else if (pathname === '/console' || pathname.startsWith('/console/')) {
      const file = pathname.slice('/console/'.length) || 'index.html'
      response.writeHead(200, { 'content-type': TYPES[file]!, 'content-security-policy': POLICY })
      response.end(readFileSync(join(REPOSITORY, 'dist', 'frontend', 'console', file)))
    } else if (this.token !== undefined && request.headers.authorization !== `Bearer ${this.token}`) {
      response.writeHead(401, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ code: 401, message: 'Token Authentication failed.' }))
    } else if (pathname === '/events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
      this.#viewers.add(response)
      response.on('close', () => this.#viewers.delete(response))
    } else {
      this.calls.push(`${request.method!} ${request.url!}`)
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ status: `Done: ${request.method!}` }))
    }
  }
}

export function eventBytes<Topic extends keyof ServerEvents>(
  topic: Topic,
  data: ServerEvents[Topic],
): Buffer {
  return Buffer.from(`event: ${topic}\ndata: ${JSON.stringify(data)}\n\n`)
}

const AT = '2026-01-02T03:04:05.000Z'
const TIMES = { bounds: [0.001, 0.01, 0.1], counts: [0, 0, 0, 0], sum: 0 }
const NONE = { finished: 0, failed: 0, cancelled: 0, timed_out: 0, client_stalled: 0 }

export function model(fields: Partial<ModelOverview> = {}): ModelOverview {
  return {
    modelName: 'words',
    modelVersion: '1.0',
    isDefault: true,
    state: 'ready',
    runtime: 'node',
    minWorkers: 1,
    maxWorkers: 1,
    workers: [{ id: '9000', pid: 4242, state: 'ready', memoryBytes: 61_000_000, inFlight: 1, restarts: 0 }],
    queue: { waiting: 0, room: 100 },
    open: 0,
    streams: 0,
    failedInARow: 0,
    errors: [],
    counts: { unary: NONE, stream: NONE, items: 0, bytes: 0 },
    times: { firstResponse: TIMES, gaps: TIMES, queue: TIMES, whole: TIMES },
    ...fields,
  }
}

export function overview(models: ModelOverview[], fields: Partial<OverviewEvent> = {}): OverviewEvent {
  return {
    at: AT,
    server: {
      version: '0.1.0',
      node: '20.0.0',
      pid: 1,
      startedAt: AT,
      draining: false,
      memoryBytes: 90_000_000,
      cpuSeconds: 1.5,
      openRequests: 0,
      listening: [{ name: 'Inference REST API', address: 'http://127.0.0.1:1' }],
    },
    models,
    failed: [],
    loading: [],
    ...fields,
  }
}

export function openRequest(index: number, fields: Partial<OpenRequest> = {}): OpenRequest {
  return {
    id: `id-${String(index).padStart(5, '0')}`,
    modelName: 'words',
    modelVersion: '1.0',
    api: 'openai',
    client: '127.0.0.1',
    ageMs: index * 10,
    streaming: true,
    items: index,
    bytes: index * 10,
    firstResponseMs: 3.2,
    lastGapMs: 20,
    waitsFor: 'handler',
    ...fields,
  }
}

export function logLine(message: string, level: LogEntry['level'] = 'info'): LogEntry {
  return { at: AT, level, logger: 'MODEL_LOG', thread: 'W-9000-words_1.0-stdout', message }
}

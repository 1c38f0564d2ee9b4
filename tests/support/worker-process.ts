import type { ChildProcess } from 'node:child_process'
import { joinHeaders } from '../../common/headers.ts'
import { once } from 'node:events'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { type Channel, frontendChannel, type FrontendEvents } from '../../protocol/channel.ts'
import type {
  FromWorker,
  LoadedMessage,
  LoadMessage,
  PredictRequest,
  ResponseMessage,
  ToWorker,
} from '../../protocol/messages.ts'
import { allAsMessages } from './all-as-messages.ts'
import { tempDir } from './temp.ts'
import { spawn } from './tools.ts'

type Failure = FromWorker & { type: 'failure' }

/** The compiled worker: the one that `npm test` has just built, unless WORKER_MAIN names another. */
const MAIN =
  process.env['WORKER_MAIN'] ?? join(import.meta.dirname, '..', '..', 'dist', 'backend-worker', 'main.js')

export interface WorkerOptions {
  env?: Record<string, string>
  args?: string[]
  /** Default: a Unix socket in a folder of the test. */
  address?: { path: string } | { port: number }
}

/**
 * A handler module in its own folder, from which `torchserve-ts` resolves to the package that the worker
 * runs.
 */
export function handlerModule(source: string, name = 'handler.mjs'): string {
  const folder = tempDir()
  const modules = join(folder, 'node_modules', 'torchserve-ts')
  mkdirSync(modules, { recursive: true })
  symlinkSync(dirname(MAIN), join(modules, 'backend-worker'))
  writeFileSync(
    join(modules, 'package.json'),
    JSON.stringify({ name: 'torchserve-ts', type: 'module', exports: './backend-worker/index.js' }),
  )
  const path = join(folder, name)
  writeFileSync(path, source)
  return path
}

/** Starts the worker process and waits until it listens. */
export async function startProcess(options: WorkerOptions = {}): Promise<WorkerProcess> {
  const worker = new WorkerProcess(options)
  await worker.line('Torch worker started.')
  return worker
}

/** Starts a worker, connects, and loads a handler from its source. Fails when it does not load. */
export async function startWorker(
  source: string,
  options: WorkerOptions = {},
  load: Partial<LoadMessage> = {},
): Promise<WorkerConnection> {
  const worker = await (await startProcess(options)).connect()
  const { error } = await worker.load(handlerModule(source), load)
  if (error !== undefined) throw new Error(`The handler did not load: ${error.detail ?? error.message}`)
  return worker
}

/** The process, as the frontend would start it. */
export class WorkerProcess {
  readonly child: ChildProcess
  readonly address: { path: string } | { port: number }
  readonly exited: Promise<number | NodeJS.Signals>
  stdout = ''
  stderr = ''
  readonly #changed = new Set<() => void>()

  constructor(options: WorkerOptions) {
    this.address = options.address ?? { path: join(tempDir(), 'worker.sock') }
    const where =
      'path' in this.address
        ? ['--sock-name', this.address.path]
        : ['--sock-type', 'tcp', '--port', String(this.address.port)]
    this.child = spawn(process.execPath, [MAIN, ...where, ...(options.args ?? [])], {
      env: { PATH: process.env['PATH'], ...options.env },
    })
    this.child.stdout!.on('data', (data: Buffer) => this.#output('stdout', data))
    this.child.stderr!.on('data', (data: Buffer) => this.#output('stderr', data))
    this.exited = once(this.child, 'close').then(([code, signal]) => {
      this.#wake()
      return (code ?? signal) as number | NodeJS.Signals
    })
  }

  get socketExists(): boolean {
    return 'path' in this.address && existsSync(this.address.path)
  }

  /** Waits until the text is in stdout; fails when the process ends without it. */
  async line(text: string): Promise<void> {
    while (!this.stdout.includes(text)) {
      if (this.child.exitCode !== null) throw new Error(`The worker has left: ${this.stderr}`)
      await new Promise<void>((resolve) => this.#changed.add(resolve))
    }
  }

  async connect(): Promise<WorkerConnection> {
    const socket = connect(this.address as { path: string })
    const connection = new WorkerConnection(this, (events) => frontendChannel(socket, 2 ** 30, events))
    await connection.next('ready')
    return connection
  }

  #output(stream: 'stdout' | 'stderr', data: Buffer): void {
    this[stream] += data.toString()
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#changed) wake()
    this.#changed.clear()
  }
}

/** The frontend's side of the socket: sends, and keeps what came until a test asks for it. */
export class WorkerConnection {
  readonly process: WorkerProcess
  readonly channel: Channel<ToWorker>
  /** All messages so far, in their order. */
  readonly received: FromWorker[] = []
  /** Set: called for each message instead of keeping it. */
  onMessage: ((message: FromWorker) => void) | undefined
  closed = false
  #read = 0
  readonly #changed = new Set<() => void>()

  constructor(worker: WorkerProcess, open: (events: FrontendEvents) => Channel<ToWorker>) {
    this.process = worker
    this.channel = open(
      allAsMessages(
        (message) => {
          if (this.onMessage !== undefined) this.onMessage(message)
          else this.received.push(message)
          this.#wake()
        },
        () => {
          this.closed = true
          this.#wake()
        },
      ),
    )
  }

  send(message: ToWorker): void {
    this.channel.send(message)
  }

  /**
   * The next unread message of this type; earlier ones of other types are skipped. Fails when the worker
   * closes first.
   */
  async next<T extends FromWorker['type']>(type: T): Promise<FromWorker & { type: T }> {
    for (;;) {
      while (this.#read < this.received.length) {
        const message = this.received[this.#read++]!
        if (message.type === type) return message as FromWorker & { type: T }
      }
      if (this.closed) throw new Error(`The worker closed before "${type}": ${this.process.stderr}`)
      await new Promise<void>((resolve) => this.#changed.add(resolve))
    }
  }

  async load(handlerPath: string, more: Partial<LoadMessage> = {}): Promise<LoadedMessage> {
    this.send({
      type: 'load',
      modelName: 'm',
      modelVersion: '1.0',
      modelDir: dirname(handlerPath),
      handlerPath,
      manifest: { model: { modelName: 'm' } },
      modelConfig: { greeting: 'hello' },
      batchSize: 4,
      gpuId: -1,
      serverVersion: '9.9',
      maxResponseBytes: 1_000_000,
      maxUnsentBytes: 100_000,
      decodeInput: true,
      ...more,
    })
    return this.next('loaded')
  }

  predict(...requests: PredictRequest[]): void {
    this.send({ type: 'predict', requests })
  }

  /** All responses to a request up to its end, with the end; gives no credit. */
  async answer(id: number): Promise<Answer> {
    for (;;) {
      const own = this.received.filter(
        (message): message is ResponseMessage | Failure =>
          (message.type === 'response' || message.type === 'failure') && message.id === id,
      )
      const last = own.at(-1)
      if (last !== undefined && (last.type === 'failure' || last.ts_stream_next !== 'true')) {
        const responses = own.filter((message) => message.type === 'response')
        return {
          responses,
          items: responses.map(({ body }) => Buffer.from(body).toString()),
          marks: responses.map(({ ts_stream_next }) => ts_stream_next),
          error: last.type === 'failure' ? last.error : undefined,
        }
      }
      if (this.closed) throw new Error(`The worker closed before an answer: ${this.process.stderr}`)
      await new Promise<void>((resolve) => this.#changed.add(resolve))
    }
  }

  /** Resolves when all earlier messages were handled: the pong has arrived. */
  async ping(nonce = 1): Promise<void> {
    this.send({ type: 'ping', nonce })
    await this.next('pong')
  }

  /** Closes the connection, after which the worker exits. */
  async close(): Promise<number | NodeJS.Signals> {
    this.channel.close()
    return this.process.exited
  }

  #wake(): void {
    for (const wake of this.#changed) wake()
    this.#changed.clear()
  }
}

export interface Answer {
  responses: ResponseMessage[]
  /** Bodies as text. */
  items: string[]
  marks: (string | undefined)[]
  error: Failure['error'] | undefined
}

/** The fields of a request besides its body. */
export type RequestOptions = Partial<Omit<PredictRequest, 'headers'>> & { headers?: Record<string, string> }

/** A request with a JSON body. */
export function request(id: number, body: unknown = {}, more: RequestOptions = {}): PredictRequest {
  return {
    method: 'handle',
    id,
    requestId: `id-${id}`,
    parts: [{ name: 'body', contentType: 'application/json', data: Buffer.from(JSON.stringify(body)) }],
    window: 65_536,
    ...more,
    headers: joinHeaders(more.headers ?? {}),
  }
}

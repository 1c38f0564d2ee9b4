import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ModelDescription, WorkerDescription } from '../../frontend/models/operations.ts'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { filesBelow } from './files-below.ts'
import { rawRequest } from './raw-http.ts'
import { spawn } from './tools.ts'

export const REPOSITORY = join(import.meta.dirname, '..', '..')
export const CLI = join(REPOSITORY, 'dist', 'frontend', 'cli.js')

/** The fields of a management response that is not a description. */
export interface Answer {
  [key: number]: unknown
  code?: number
  type?: string
  message?: string
  status?: string
  models?: { modelName: string }[]
}

export interface ServerOptions {
  /** `[name=]location` each; locations are absolute or in the model store. */
  models?: string[]
  /** `by variable`: no flag names it, and nobody makes it. */
  modelStore?: string
  /** Lines for config.properties beyond the addresses. */
  config?: Record<string, string | number | boolean>
  /** Default: token authorization off, model API on. */
  flags?: string[]
  env?: Record<string, string>
  /** Where it runs; default: a new folder. */
  folder?: string
  /**
   * As a user starts it: the server finds its configuration (config.properties) and a snapshot by itself.
   * `without a file`: there is no config.properties. Default false.
   */
  snapshots?: boolean | 'without a file'
  /** In a process group of its own, as a shell starts it. */
  detached?: boolean
  /** Flags for Node itself. */
  nodeArgs?: string[]
  /** The limit of open files, as `ulimit -n` sets it. */
  descriptors?: number
}

/** The options of a server whose folder is known. */
export type PlacedOptions = ServerOptions & { folder: string }

/** Milliseconds between two reads, including the time that a read takes. */
const LOOK_EVERY_MS = 12.5

/** A server started through the command line, in the foreground, on free ports, in a folder of its own. */
export class Server {
  readonly process: ChildProcess
  readonly folder: string
  readonly output: string[] = []
  /** Of the requests that this class makes: whoever runs it with tokens shows one of them here. */
  headers: Readonly<Record<string, string>> = {}
  ports = {
    inference: 0,
    management: 0,
    metrics: 0,
    grpcInference: 0,
    grpcManagement: 0,
    openInference: 0,
    triton: 0,
  }

  constructor(child: ChildProcess, folder: string) {
    this.process = child
    this.folder = folder
  }

  get pid(): number {
    return this.process.pid!
  }

  /** A management request; the parsed JSON answer. */
  async manage(method: string, path: string): Promise<{ status: number; json: Answer }> {
    const { headers } = this
    const { status, body } = await rawRequest(this.ports.management, path, { method, headers })
    return { status, json: JSON.parse(body) as Answer }
  }

  /** Every version that describe shows. */
  async describe(model: string, version = ''): Promise<ModelDescription[]> {
    return (await this.manage('GET', `/models/${model}${version}`)).json as ModelDescription[]
  }

  /** The first worker of a model, as describe shows it. */
  async worker(model: string): Promise<WorkerDescription> {
    const [description] = await this.describe(model)
    return description!.workers[0]!
  }

  /**
   * Repeats a read until it passes. It ends after a number of reads, not after a time: as many as fit into
   * `idleMs` on an idle machine. On a busy one they take as much longer as everything else.
   */
  async until<T>(read: () => Promise<T>, passes: (value: T) => boolean, idleMs = 60_000): Promise<T> {
    const maxLooks = idleMs / LOOK_EVERY_MS
    let value = await read()
    for (let looks = 1; !passes(value); looks += 1) {
      if (looks >= maxLooks) throw new Error(`Not in ${looks} looks; last: ${JSON.stringify(value)}`)
      await new Promise((resolve) => setTimeout(resolve, 10))
      value = await read()
    }
    return value
  }

  /** Lines of its output with these words, once there is one: an answer may come before what is logged. */
  lines(words: string | RegExp): Promise<string[]> {
    const has = (line: string): boolean =>
      typeof words === 'string' ? line.includes(words) : words.test(line)
    return this.until(
      () => Promise.resolve(this.output.filter(has)),
      (lines) => lines.length > 0,
    )
  }

  async ready(model: string, idleMs?: number): Promise<void> {
    await this.until(
      () => this.describe(model),
      (versions) => versions[0]!.workers.every((worker) => worker.status === 'READY'),
      idleMs,
    )
  }

  /** The value of a metric, summed over its label sets that contain all of `labels`. */
  async metric(name: string, labels: Record<string, string> = {}): Promise<number> {
    const { body } = await rawRequest(this.ports.metrics, '/metrics', { method: 'GET' })
    const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`)
    return body
      .split('\n')
      .filter(
        (line) =>
          (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) &&
          wanted.every((w) => line.includes(w)),
      )
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
  }

  /** SIGTERM, and its exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      this.process.kill(signal)
      await once(this.process, 'exit')
    }
    return this.process.exitCode
  }

  /** What is left in its temporary folder: sockets, unpacked models, the pid file. */
  leftovers(): string[] {
    return filesBelow(join(this.folder, 'tmp'))
  }
}

/** Starts a server; {@link started} waits for it. Whoever calls this stops it. */
export function launchServer(options: PlacedOptions): Server {
  return new Server(spawnCli(options), options.folder)
}

/** Resolves at `Model server started.` @throws Error with its output when it ends before */
export async function started(server: Server): Promise<Server> {
  await new Promise<void>((resolve, reject) => {
    readLines(server.process.stderr!, (line) => server.output.push(line))
    readLines(server.process.stdout!, (line) => {
      server.output.push(line)
      if (line.includes('Model server started.')) resolve()
    })
    server.process.once('exit', (code) => {
      reject(new Error(`The server ended with ${code}:\n${server.output.join('\n')}`))
    })
  })
  server.ports = {
    inference: port(server.output, /Inference.*https?:\/\/[^:]+:(\d+)/),
    management: port(server.output, /Management.*https?:\/\/[^:]+:(\d+)/),
    metrics: port(server.output, /Metrics.*https?:\/\/[^:]+:(\d+)/),
    grpcInference: port(server.output, /Inference gRPC.*:(\d+)/),
    grpcManagement: port(server.output, /Management gRPC.*:(\d+)/),
    openInference: port(server.output, /Open Inference gRPC API listens.*:(\d+)/),
    triton: port(server.output, /Triton.*:(\d+)/),
  }
  return server
}

function spawnCli(options: PlacedOptions): ChildProcess {
  const { folder } = options
  const store = options.modelStore ?? join(folder, 'store')
  const isByVariable = store === 'by variable'
  if (!isByVariable) mkdirSync(store, { recursive: true })
  mkdirSync(join(folder, 'tmp'), { recursive: true })
  const config = {
    inference_address: 'http://127.0.0.1:0',
    management_address: 'http://127.0.0.1:0',
    metrics_address: 'http://127.0.0.1:0',
    grpc_inference_port: 0,
    grpc_management_port: 0,
    default_workers_per_model: 1,
    ...options.config,
    // Tests look for lines of the server and of handlers; the other logs are in their files.
    log_console: options.config?.['log_console'] ?? 'ts_log,model_log',
  }
  const file = join(folder, 'config.properties')
  const lines = Object.entries(config).map(([key, value]) => `${key}=${value}\n`)
  if (options.snapshots === 'without a file') rmSync(file, { force: true })
  else writeFileSync(file, lines.join(''))
  const flags = options.flags ?? ['--disable-token-auth', '--enable-model-api']
  const models = options.models === undefined ? [] : ['--models', ...options.models]
  const { descriptors } = options
  const limited = ['-c', `ulimit -n ${descriptors}; exec "$0" "$@"`, process.execPath]
  return spawn(
    descriptors === undefined ? process.execPath : 'sh',
    [
      ...(descriptors === undefined ? [] : limited),
      ...(options.nodeArgs ?? []),
      CLI,
      '--start',
      '--foreground',
      ...((options.snapshots ?? false) === false ? ['--ncs', '--ts-config', file] : []),
      ...(isByVariable ? [] : ['--model-store', store]),
      ...flags,
      ...models,
    ],
    {
      cwd: folder,
      env: {
        ...process.env,
        NODE_OPTIONS: '',
        LOG_LOCATION: 'logs',
        TEMP: join(folder, 'tmp'),
        TMPDIR: join(folder, 'tmp'),
        ...options.env,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: options.detached ?? false,
    },
  )
}

function port(lines: string[], pattern: RegExp): number {
  for (const line of lines) {
    const found = pattern.exec(line)
    if (found) return Number(found[1])
  }
  return 0
}

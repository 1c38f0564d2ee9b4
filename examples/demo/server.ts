import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { freePorts } from './free-ports.ts'

const CLI = fileURLToPath(new URL('../../dist/frontend/cli.js', import.meta.url))
const LAST_LINES = 30

export interface ServerOptions {
  /** Absolute path. */
  modelStore: string
  /** Values for --models: archives or folders of the store. */
  models: string[]
  /** Further lines of config.properties. */
  config?: Record<string, string | number | boolean>
  signal: AbortSignal
}

/** The fields of describe's workers that are used here. */
interface WorkerState {
  status: string
  lastExit?: { reason: string }
}

/** A server in the foreground, on free ports, with its logs and files in a temporary folder. */
export class DemoServer {
  readonly inferencePort: number
  readonly managementPort: number
  readonly grpcPort: number
  readonly #folder: string
  readonly #process: ReturnType<typeof launch>
  readonly #lines: string[] = []

  private constructor(folder: string, ports: number[], process: ReturnType<typeof launch>) {
    this.#folder = folder
    this.inferencePort = ports[0]!
    this.managementPort = ports[1]!
    this.grpcPort = ports[3]!
    this.#process = process
  }

  /** Resolves when the server has started. @throws Error with its last lines when it fails */
  static async start(options: ServerOptions): Promise<DemoServer> {
    options.signal.throwIfAborted()
    const folder = await mkdtemp(join(tmpdir(), 'torchserve-ts-'))
    const ports = await freePorts(5)
    const config = join(folder, 'config.properties')
    await writeFile(config, properties(ports, options.config))
    const server = new DemoServer(folder, ports, launch(folder, flags(options, config)))
    try {
      await server.#started(options.signal)
      return server
    } catch (error) {
      await server.stop()
      throw error
    }
  }

  /** Resolves when a worker of the model is READY. @throws Error with the reason when its worker died */
  async modelReady(name: string, signal: AbortSignal): Promise<void> {
    const url = `http://127.0.0.1:${this.managementPort}/models/${name}`
    for (;;) {
      const answer = await fetch(url, { signal })
      if (!answer.ok) throw this.#failure(`The server does not know the model ${name}`)
      const versions = (await answer.json()) as { workers: WorkerState[] }[]
      const worker = versions[0]?.workers[0]
      if (worker?.status === 'READY') return
      if (worker?.lastExit !== undefined) throw new Error(`${name} did not load: ${worker.lastExit.reason}`)
      await sleep(50, undefined, { signal })
    }
  }

  /** Ends the server and removes its folder. */
  async stop(): Promise<void> {
    this.#process.kill('SIGTERM')
    await this.#process
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Reads the server's output until it ends. */
  #started(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const stop = (): void => {
        reject(signal.reason as Error)
      }
      signal.addEventListener('abort', stop, { once: true })
      void this.#read((line) => {
        if (line.includes('Model server started.')) resolve()
      }).then(() => {
        reject(this.#failure('The server did not start'))
      }, reject)
    })
  }

  async #read(onLine: (line: string) => void): Promise<void> {
    for await (const line of this.#process.iterable({ from: 'all' })) {
      this.#lines.push(line)
      if (this.#lines.length > LAST_LINES) this.#lines.shift()
      onLine(line)
    }
  }

  #failure(what: string): Error {
    return new Error([`${what}. Its last lines:`, ...this.#lines].join('\n  '))
  }
}

function launch(folder: string, flags: string[]) {
  return execa(process.execPath, [CLI, ...flags], {
    all: true,
    buffer: false,
    cwd: folder,
    env: { LOG_LOCATION: join(folder, 'logs'), METRICS_LOCATION: join(folder, 'logs') },
    forceKillAfterDelay: 20_000,
    reject: false,
    stdin: 'ignore',
  })
}

function flags(options: ServerOptions, config: string): string[] {
  return [
    ...['--start', '--foreground', '--ncs', '--disable-token-auth'],
    ...['--ts-config', config, '--model-store', options.modelStore, '--models', ...options.models],
  ]
}

function properties(ports: number[], more: ServerOptions['config'] = {}): string {
  return [
    `inference_address=http://127.0.0.1:${ports[0]!}`,
    `management_address=http://127.0.0.1:${ports[1]!}`,
    `metrics_address=http://127.0.0.1:${ports[2]!}`,
    `grpc_inference_port=${ports[3]!}`,
    `grpc_management_port=${ports[4]!}`,
    ...Object.entries(more).map(([key, value]) => `${key}=${value}`),
    '',
  ].join('\n')
}

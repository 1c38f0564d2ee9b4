import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { freePorts } from '../ports.ts'
import { RawRequest, rawRequest } from '../raw-http.ts'
import type { TestPython } from './environments.ts'
import { spawn, execa } from '../tools.ts'

const START_LIMIT_MS = 180_000
/** Milliseconds for a response that only shows that a model exists. */
const ANSWER_LIMIT_MS = 10_000
const NAMES = ['inference', 'management', 'metrics', 'grpcInference', 'grpcManagement'] as const

/** Whether TorchServe's own server can run here; it needs Java. */
export async function hasJava(): Promise<boolean> {
  const { failed } = await execa('java', ['-version'], { reject: false, stdin: 'ignore' })
  return !failed
}

/** TorchServe itself, on free ports. */
export class TorchServe {
  readonly ports: Record<(typeof NAMES)[number], number>
  readonly #child: ChildProcess
  readonly #output: string[]

  private constructor(child: ChildProcess, ports: TorchServe['ports'], output: string[]) {
    this.#child = child
    this.ports = ports
    this.#output = output
  }

  /**
   * @param folder for its configuration, logs and temporary files; short, for sockets lie below it
   * @param models names of all models of the store; none: it loads none
   * @param env variables beside its own
   */
  static async start(
    { python, bin }: TestPython,
    store: string,
    folder: string,
    models: readonly string[],
    env: Readonly<Record<string, string>> = {},
  ): Promise<TorchServe> {
    const ports = await portsByName()
    const config = join(folder, 'config.properties')
    mkdirSync(join(folder, 'tmp'), { recursive: true })
    writeFileSync(config, configuration(ports))
    const child = spawn(
      join(bin, 'torchserve'),
      [
        ...['--start', '--foreground', '--ncs', '--ts-config', config, '--model-store', store],
        ...(models.length === 0 ? [] : ['--models', 'all']),
        ...['--disable-token-auth', '--enable-model-api'],
      ],
      {
        cwd: folder,
        // The command itself takes the Python from PATH.
        env: {
          ...process.env,
          NODE_OPTIONS: '',
          PATH: [join(python, '..'), process.env['PATH']].join(delimiter),
          LOG_LOCATION: join(folder, 'logs'),
          METRICS_LOCATION: join(folder, 'logs'),
          TEMP: join(folder, 'tmp'),
          TMPDIR: join(folder, 'tmp'),
          ...env,
        },
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: true,
      },
    )
    const output: string[] = []
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (text: Buffer) => {
        output.push(text.toString())
        if (output.length > 500) output.shift()
      })
    const server = new TorchServe(child, ports, output)
    try {
      for (const model of models) await server.#ready(model)
      await server.#listens(ports.grpcInference)
    } catch (error) {
      await server.stop()
      throw error
    }
    return server
  }

  /** Of the command; the server and its workers descend from it. */
  get pid(): number {
    return this.#child.pid!
  }

  /** Ends it with its workers. */
  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exit = once(this.#child, 'exit')
    process.kill(-this.#child.pid!, 'SIGKILL')
    await exit
  }

  /** Its gRPC API opens after REST, which shows that models are ready. */
  async #listens(port: number): Promise<void> {
    const end = performance.now() + START_LIMIT_MS
    while (!(await accepts(port))) {
      if (performance.now() > end || this.#child.exitCode !== null)
        throw new Error(`TorchServe did not open port ${port}:\n${this.#output.join('')}`)
      await wait(200)
    }
  }

  async #ready(model: string): Promise<void> {
    const end = performance.now() + START_LIMIT_MS
    for (let polls = 1; ; polls += 1) {
      if (await this.#isReady(model)) return
      // TorchServe never shows an asynchronous worker as ready if it did not start at once; but it serves
      // requests.
      if (polls % 25 === 0 && (await this.#answers(model))) return
      if (performance.now() > end || this.#child.exitCode !== null)
        throw new Error(`TorchServe did not load ${model}:\n${this.#output.join('')}`)
      await wait(200)
    }
  }

  async #answers(model: string): Promise<boolean> {
    const options = { body: '{"seconds": 0}', headers: { 'content-type': 'application/json' } }
    const request = new RawRequest(this.ports.inference, `/predictions/${model}`, options)
    const timer = setTimeout(() => request.destroy(), ANSWER_LIMIT_MS)
    const { status } = await request.done
    clearTimeout(timer)
    return status === 200
  }

  async #isReady(model: string): Promise<boolean> {
    const { status, body } = await rawRequest(this.ports.management, `/models/${model}`, { method: 'GET' })
    if (status !== 200) return false
    const [description] = JSON.parse(body) as { workers: { status: string }[] }[]
    return (
      description!.workers.length > 0 && description!.workers.every((worker) => worker.status === 'READY')
    )
  }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

function configuration(ports: Record<(typeof NAMES)[number], number>): string {
  return [
    `inference_address=http://127.0.0.1:${ports.inference}`,
    `management_address=http://127.0.0.1:${ports.management}`,
    `metrics_address=http://127.0.0.1:${ports.metrics}`,
    `grpc_inference_port=${ports.grpcInference}`,
    `grpc_management_port=${ports.grpcManagement}`,
    'default_workers_per_model=1',
    'disable_system_metrics=true',
    'install_py_dep_per_model=true',
    '',
  ].join('\n')
}

async function portsByName(): Promise<Record<(typeof NAMES)[number], number>> {
  const ports = await freePorts(NAMES.length)
  return Object.fromEntries(NAMES.map((name, i) => [name, ports[i]])) as Record<
    (typeof NAMES)[number],
    number
  >
}

import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stagesOf, startOf } from '../image/dockerfile.ts'
import { freePorts } from '../../support/ports.ts'
import { rawRequest } from '../../support/raw-http.ts'
import { REPOSITORY, Server, started } from '../../support/server-process.ts'
import { spawn } from '../../support/tools.ts'

/** A pod as KServe's webhook leaves it, as far as a process needs it. */
export interface Pod {
  metadata: { name: string; annotations?: Record<string, string> }
  spec: {
    terminationGracePeriodSeconds: number
    containers: Container[]
    volumes?: { name: string }[]
  }
}

export interface Container {
  name: string
  command?: string[]
  args?: string[]
  env?: { name: string; value?: string }[]
  ports?: { name?: string; containerPort: number }[]
  volumeMounts?: { name: string; mountPath: string; subPath?: string; readOnly?: boolean }[]
  readinessProbe: { httpGet: { path: string; port: number }; periodSeconds: number }
  lifecycle?: { preStop?: { sleep?: { seconds: number } } }
}

const CONTAINER = join(REPOSITORY, 'deploy', 'container')
/** Of the image: the last stage of its Dockerfile. */
const IMAGE = startOf(stagesOf(readFileSync(join(CONTAINER, 'Dockerfile'), 'utf8')).at(-1)!)
const PROPERTIES = 'kserve.properties'
const PORTS = [8080, 8081, 8082, 8085, 9000]

/** The container of a pod as a process: its arguments, variables, probe, and the way that it is ended. */
export class RunningPod {
  readonly #container: Container
  readonly #grace: number
  readonly #ports: ReadonlyMap<number, number>
  readonly server: Server

  private constructor(container: Container, grace: number, ports: Map<number, number>, server: Server) {
    this.#container = container
    this.#grace = grace
    this.#ports = ports
    this.server = server
  }

  /**
   * Starts it. Paths of the image, of its writable folder and of the models become ones of this machine, and
   * ports free ones of 127.0.0.1.
   * @param folder gets what the container writes @param models what the volume at its mount has
   * @param programs folder with those of the image, before this machine's
   */
  static async start(pod: Pod, folder: string, models: string, programs?: string): Promise<RunningPod> {
    const container = pod.spec.containers.find(({ name }) => name === 'kserve-container')!
    const mount = container.volumeMounts!.find(({ name }) => name !== 'kube-api-access')!
    const free = await freePorts(PORTS.length + 1)
    const ports = new Map(PORTS.map((port, k) => [port, free[k]!]))
    mkdirSync(join(folder, 'tmp'), { recursive: true })
    const file = join(folder, PROPERTIES)
    const moved = new Map([
      [join(IMAGE.folder, PROPERTIES), file],
      [IMAGE.folder, REPOSITORY],
      [mount.mountPath, models],
      ['/tmp', join(folder, 'tmp')],
    ])
    // In one pass, because the folders of this machine are below /tmp too.
    const here = (text: string): string =>
      text.replace(new RegExp([...moved.keys()].join('|')), (path) => moved.get(path)!)
    writeFileSync(file, propertiesOf(ports, here))
    const [entry, ...rest] = container.command ?? IMAGE.command.slice(0, -2)
    const variables = [
      ...Object.entries(IMAGE.env),
      ...(container.env ?? []).map(({ name, value = '' }) => [name, value]),
    ]
    const machine = process.env['PATH']!
    const child = spawn(
      entry === 'node' ? process.execPath : entry!,
      [...rest, ...(container.args ?? IMAGE.command.slice(-2))].map(here),
      {
        cwd: folder,
        env: {
          PATH: programs === undefined ? machine : `${programs}:${machine}`,
          TMPDIR: join(folder, 'tmp'),
          ...Object.fromEntries(variables.map(([name, value]) => [name!, local(here(value!), ports)])),
        },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    )
    const running = new RunningPod(
      container,
      pod.spec.terminationGracePeriodSeconds,
      ports,
      new Server(child, folder),
    )
    await started(running.server)
    return running
  }

  /** Where one of the container's two APIs listens. */
  portOf(api: keyof Server['ports']): number {
    return this.server.ports[api]
  }

  /** Whether the readiness probe passes now. */
  async isReady(): Promise<boolean> {
    const { path, port } = this.#container.readinessProbe.httpGet
    const { status } = await rawRequest(this.#ports.get(port)!, path, { method: 'GET' })
    return status >= 200 && status < 400
  }

  /**
   * Ends it as the kubelet does: preStop, SIGTERM, and SIGKILL after the grace period.
   * @returns its exit code; null: it was killed
   */
  async end(): Promise<number | null> {
    const seconds = this.#container.lifecycle?.preStop?.sleep?.seconds ?? 0
    const child = this.server.process
    const killed = setTimeout(() => child.kill('SIGKILL'), this.#grace * 1000)
    const exit = once(child, 'exit')
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
    child.kill('SIGTERM')
    await exit
    clearTimeout(killed)
    return child.exitCode
  }
}

/** The image's own configuration, with addresses and folders of this machine. */
function propertiesOf(ports: ReadonlyMap<number, number>, here: (text: string) => string): string {
  const source = join(CONTAINER, PROPERTIES)
  if (!existsSync(source)) throw new Error(`There is no ${source}`)
  const lines = readFileSync(source, 'utf8').split('\n')
  const moved = lines.map((line) => local(here(line), ports))
  return [...moved, 'grpc_inference_port=0', 'grpc_management_port=0', ''].join('\n')
}

/** An address of the container as one of this machine. */
function local(text: string, ports: ReadonlyMap<number, number>): string {
  return text
    .replace('0.0.0.0', '127.0.0.1')
    .replace(/(?<=^|[=:])(\d{4})$/, (port) => String(ports.get(Number(port)) ?? port))
}

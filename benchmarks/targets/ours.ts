import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { COUNT, ECHO, HUNDRED } from '../ceilings/workload.ts'
import type { Settings } from '../options.ts'
import { processTree, Service } from '../processes.ts'
import { scratch } from '../scratch.ts'
import { postAndRead } from '../wire.ts'
import type { Target } from './target.ts'

export const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const HUNDRED_FOLDER = fileURLToPath(new URL('../handlers/hundred', import.meta.url))
const CERTIFICATE = fileURLToPath(new URL('../../tests/support/tls/', import.meta.url))
const TLS = `certificate_file=${CERTIFICATE}cert.pem
private_key_file=${CERTIFICATE}key.pem
enable_grpc_ssl=true`
let starts = 0

/** The command that starts torchserve-ts like a user, with the ports that it will listen on. */
export interface OursCommand {
  args: string[]
  env: Record<string, string>
  /** Working directory; the server writes its logs there. */
  cwd: string
  restOrigin: string
  grpcOrigin: string
  managementOrigin: string
  metricsOrigin: string
}

/** What a server is started with. */
export interface OursOptions {
  models?: readonly string[]
  /** Lines of config.properties. */
  config?: string
  /** Default: the checkout's own. */
  modelStore?: string
  /** Folder of the checkout, built. Default: this one. */
  checkout?: string
  /** Of the models, default side-by-side. */
  settings?: Settings
  /** Whether requests need one of TorchServe's keys, default no. */
  tokens?: boolean
  /** Whether inference has TLS, over REST and gRPC; default no. */
  tls?: boolean
}

export async function oursCommand(options: OursOptions = {}): Promise<OursCommand> {
  const { models = [ECHO, COUNT, HUNDRED], checkout = ROOT, settings = 'side-by-side' } = options
  const folder = scratch(`ours-${starts++}`)
  mkdirSync(folder)
  const file = `${folder}/config.properties`
  const scheme = options.tls === true ? 'https' : 'http'
  const [rest, management, metrics, grpc, grpcManagement] = await freePorts(5)
  const lines = [
    `inference_address=${scheme}://127.0.0.1:${rest!}`,
    `management_address=http://127.0.0.1:${management!}`,
    `metrics_address=http://127.0.0.1:${metrics!}`,
    `grpc_inference_port=${grpc!}`,
    `grpc_management_port=${grpcManagement!}`,
    `disable_token_authorization=${options.tokens !== true}`,
    ...(options.tls === true ? [TLS] : []),
    options.config ?? '',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const modelOf = (name: string): string =>
    settings === 'default' ? plainFolder(name, folder) : modelFolder(name)
  // `name=archive` stays as it is.
  const modelFlag = (name: string): string => (name.includes('=') ? name : `${name}=${modelOf(name)}`)
  return {
    args: [
      join(checkout, 'dist/frontend/cli.js'),
      ...['--start', '--foreground', '--ncs', '--ts-config', file],
      ...['--model-store', options.modelStore ?? join(checkout, 'model-store')],
      ...['--models', ...models.map(modelFlag)],
    ],
    env: { LOG_LOCATION: `${folder}/logs`, TEMP: folder, TMPDIR: folder },
    cwd: folder,
    restOrigin: `${scheme}://127.0.0.1:${rest!}`,
    grpcOrigin: `${scheme}://127.0.0.1:${grpc!}`,
    managementOrigin: `http://127.0.0.1:${management!}`,
    metricsOrigin: `http://127.0.0.1:${metrics!}`,
  }
}

/** A bundled model, or one of the benchmark's own. */
function modelFolder(name: string): string {
  return name === HUNDRED ? HUNDRED_FOLDER : name
}

/** A copy of a model's handler with one worker and no other setting. */
function plainFolder(name: string, parent: string): string {
  const source = name === HUNDRED ? HUNDRED_FOLDER : join(ROOT, 'model-store', name)
  const folder = join(parent, `plain-${name}`)
  mkdirSync(folder)
  copyFileSync(join(source, 'handler.ts'), join(folder, 'handler.ts'))
  writeFileSync(join(folder, 'model-config.yaml'), 'minWorkers: 1\nmaxWorkers: 1\n')
  return folder
}

/** Packs the handler of a bundled model, without its settings. @returns the path of the archive */
export async function archiveOf(name: string): Promise<string> {
  const folder = scratch('archives')
  mkdirSync(folder, { recursive: true })
  const flags = ['--model-name', name, '--version', '1.0', '--export-path', folder, '--force']
  const handler = ['--handler', join(ROOT, 'model-store', name, 'handler.ts')]
  await execa(process.execPath, [join(ROOT, 'dist/model-archiver/cli.js'), ...flags, ...handler])
  return join(folder, `${name}.mar`)
}

/** Starts torchserve-ts through its command line; resolves when every model answers. */
export async function startOurs(settings: Settings = 'side-by-side'): Promise<Target> {
  return { ...(await startThroughput(ROOT, settings)), name: `torchserve-ts ${settings}` }
}

/** Like startOurs(), from another checkout, which must be built. */
export async function startBefore(checkout: string, settings: Settings): Promise<Target> {
  return { ...(await startThroughput(resolve(checkout), settings)), name: `before ${settings}` }
}

/** By default `count` cannot serve many clients at once, so it is left out. */
async function startThroughput(checkout: string, settings: Settings): Promise<Target> {
  const models = settings === 'default' ? [ECHO, HUNDRED] : [ECHO, COUNT, HUNDRED]
  return startWith(await oursCommand({ models, checkout, settings }), models)
}

/**
 * @param models that must answer before it resolves
 * @param headersOf gives the headers of every request, once the server has started
 */
export async function startWith(
  command: OursCommand,
  models: readonly string[],
  headersOf: () => Record<string, string> = () => ({}),
): Promise<Target> {
  const [service] = await Service.start(command.args, /Model server started\./, command)
  const headers = headersOf()
  await Promise.all(models.map((model) => answers(`${command.restOrigin}/predictions/${model}`, headers)))
  return {
    headers,
    name: 'torchserve-ts',
    restOrigin: command.restOrigin,
    grpcOrigin: command.grpcOrigin,
    pids: () => processTree(service.pid),
    stop: () => service.stop(),
  }
}

/** Polls until the answer is 200: models may still be loading after the start. */
async function answers(url: string, headers: Record<string, string>): Promise<void> {
  const deadline = Date.now() + 20_000
  for (;;) {
    const { status, body } = await postAndRead(url, '{"n":1,"delay":0}', headers)
    if (status === 200) return
    if (Date.now() > deadline) throw new Error(`${url} answers ${status}: ${body}`)
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(
      (server) =>
        new Promise<number>((resolve, reject) => {
          server.once('error', reject)
          server.listen(0, '127.0.0.1', () => {
            resolve((server.address() as AddressInfo).port)
          })
        }),
    ),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { COUNT, ECHO, HUNDRED } from '../ceilings/workload.ts'
import type { Settings } from '../options.ts'
import { processTree, Service } from '../processes.ts'
import { scratch } from '../scratch.ts'
import type { Target } from './target.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const HUNDRED_FOLDER = fileURLToPath(new URL('../handlers/hundred', import.meta.url))
let starts = 0

/** The command that starts torchserve-ts like a user, with the ports that it will listen on. */
export interface OursCommand {
  args: string[]
  env: Record<string, string>
  /** Working directory; the server writes its logs there. */
  cwd: string
  restOrigin: string
  grpcOrigin: string
}

export async function oursCommand(
  models: string[] = [ECHO, COUNT, HUNDRED],
  config = '',
  modelStore?: string,
  checkout = ROOT,
  settings: Settings = 'side-by-side',
): Promise<OursCommand> {
  const [rest, management, metrics, grpc, grpcManagement] = (await freePorts(5)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  const folder = scratch(`ours-${starts++}`)
  mkdirSync(folder)
  const file = `${folder}/config.properties`
  writeFileSync(
    file,
    `inference_address=http://127.0.0.1:${rest}
management_address=http://127.0.0.1:${management}
metrics_address=http://127.0.0.1:${metrics}
grpc_inference_port=${grpc}
grpc_management_port=${grpcManagement}
${config}`,
  )
  const flags = ['--start', '--foreground', '--ncs', '--disable-token-auth', '--ts-config', file]
  return {
    args: [
      join(checkout, 'dist/frontend/cli.js'),
      ...flags,
      '--model-store',
      modelStore ?? join(checkout, 'model-store'),
      '--models',
      ...models.map(
        (name) => `${name}=${settings === 'default' ? plainFolder(name, folder) : modelFolder(name)}`,
      ),
    ],
    env: { LOG_LOCATION: `${folder}/logs`, TEMP: folder, TMPDIR: folder },
    cwd: folder,
    restOrigin: `http://127.0.0.1:${rest}`,
    grpcOrigin: `http://127.0.0.1:${grpc}`,
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
  return startWith(await oursCommand(models, '', undefined, checkout, settings), models)
}

/** @param models that must answer before it resolves */
export async function startWith(command: OursCommand, models: readonly string[]): Promise<Target> {
  const [service] = await Service.start(command.args, /Model server started\./, command)
  await Promise.all(models.map((model) => answers(`${command.restOrigin}/predictions/${model}`)))
  return {
    name: 'torchserve-ts',
    restOrigin: command.restOrigin,
    grpcOrigin: command.grpcOrigin,
    pids: () => processTree(service.pid),
    stop: () => service.stop(),
  }
}

/** Polls until the answer is 200: models may still be loading after the start. */
async function answers(url: string): Promise<void> {
  const deadline = Date.now() + 20_000
  for (;;) {
    const response = await fetch(url, { method: 'POST', body: '{"n":1,"delay":0}' })
    const body = await response.text()
    if (response.status === 200) return
    if (Date.now() > deadline) throw new Error(`${url} answers ${response.status}: ${body}`)
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

import { cpSync, existsSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { formatProperty } from '../../frontend/config/properties.ts'
import { ECHO } from '../ceilings/workload.ts'
import { processTree, Service } from '../processes.ts'
import { scratch } from '../scratch.ts'
import { oursCommand, type OursCommand } from '../targets/ours.ts'
import type { Target } from '../targets/target.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

/** torchserve-ts with its other addresses. */
export interface GrowthServer extends Target {
  restOrigin: string
  managementOrigin: string
  metricsOrigin: string
  /** Milliseconds from the start of its process until it was ready. */
  startMs: number
}

export interface ServerOptions {
  /** Folders of models by name, or an object for `model_snapshot`. */
  models: Readonly<Record<string, string>> | { snapshot: object }
  /** Keys of config.properties, as an operator would set them. */
  config?: Readonly<Record<string, string | number>>
  /** Whether it writes snapshots. Default: no. */
  snapshots?: boolean
  /** Milliseconds until it must be ready. Default 30000. */
  timeout?: number
}

/** Starts this checkout, or the one to compare with (`--before`). */
export class Starter {
  readonly #checkout: string

  constructor(checkout = ROOT) {
    this.#checkout = resolve(checkout)
  }

  /** Resolves when the server has started; its workers may still load. */
  async start({ models, config = {}, snapshots = false, timeout }: ServerOptions): Promise<GrowthServer> {
    const lines = Object.entries(config).map(([name, value]) => `${name}=${value}\n`)
    if ('snapshot' in models)
      lines.push(`${formatProperty('model_snapshot', JSON.stringify(models.snapshot))}\n`)
    const modelStore = join(ROOT, 'model-store')
    const command = await oursCommand({
      ...{ models: [], config: lines.join(''), checkout: this.#checkout, modelStore },
    })
    const left = new Set(snapshots ? ['--models', '--ncs'] : ['--models'])
    command.args = command.args.filter((argument) => !left.has(argument))
    if (!('snapshot' in models))
      command.args.push('--models', ...Object.entries(models).map(([name, folder]) => `${name}=${folder}`))
    const begin = performance.now()
    const options = { ...command, timeout }
    const [service] = await Service.start(command.args, /Model server started\./, options)
    return { ...targetOf(command, service), startMs: performance.now() - begin }
  }
}

function targetOf(command: OursCommand, service: Service): Omit<GrowthServer, 'startMs'> {
  const { restOrigin, grpcOrigin, managementOrigin, metricsOrigin } = command
  return {
    ...{ name: 'torchserve-ts', restOrigin, grpcOrigin, managementOrigin, metricsOrigin },
    pids: () => processTree(service.pid),
    stop: () => service.stop(),
  }
}

/** Resolves when the models answer with 200: they may still be loading after the start. */
export async function untilReady(
  { restOrigin }: GrowthServer,
  models: readonly string[],
  timeoutMs: number,
): Promise<void> {
  const deadline = performance.now() + timeoutMs
  for (const model of models) {
    for (;;) {
      const response = await fetch(`${restOrigin}/predictions/${model}`, { method: 'POST', body: '{"n":1}' })
      const body = await response.text()
      if (response.status === 200) break
      if (performance.now() > deadline) throw new Error(`${model} answers ${response.status}: ${body}`)
    }
  }
}

/** A folder with the handler of a bundled model or of the benchmark, and this model-config.yaml. */
export function modelFolder(name: string, config: Readonly<Record<string, number | boolean>>): string {
  const own = fileURLToPath(new URL(`../handlers/${name}`, import.meta.url))
  const source = existsSync(own) ? own : join(ROOT, 'model-store', name)
  const folder = scratch(`${name}-${Object.values(config).join('-')}`)
  if (existsSync(folder)) return folder
  cpSync(source, folder, { recursive: true })
  const lines = Object.entries(config).map(([key, value]) => `${key}: ${value}\n`)
  writeFileSync(join(folder, 'model-config.yaml'), lines.join(''))
  return folder
}

/** `echo` with so many workers, and nothing else set. */
export function echoFolder(workers: number): string {
  return modelFolder(ECHO, { minWorkers: workers, maxWorkers: workers })
}

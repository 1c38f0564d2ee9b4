import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ownValue } from '../../common/json.ts'
import {
  type Accelerator,
  measureAccelerators,
  runTool,
  type Vendor,
  VENDORS,
} from '../observe/metrics/accelerators.ts'
import type { ModelSettings } from '../models/model-settings.ts'

/** The GPUs of one vendor that this server may use. A GPU's id is its index in `list`. */
export interface Gpus {
  readonly list: readonly Accelerator[]
  /** Undefined: there are none. */
  readonly vendor: Vendor | undefined
  /** Why GPUs of the machine cannot be used; undefined: they can, or there are none. */
  readonly warning: string | undefined
}

/**
 * Asks the tools of the vendors, in TorchServe's order.
 * @param limit number_of_gpu; 0 asks nobody
 * @param devices where the machine's device files are
 */
export async function findGpus(
  limit = Infinity,
  env: NodeJS.ProcessEnv = process.env,
  devices = '/dev',
): Promise<Gpus> {
  const warnings: string[] = []
  for (const vendor of limit === 0 ? [] : VENDORS) {
    const { tool, listArgs, variables } = vendor
    try {
      const output = await runTool(tool, listArgs, env)
      const all = output === undefined ? [] : vendor.list(output)
      const list = visible(all, ownValue(env, variables[0])).slice(0, limit)
      if (list.length > 0) return { list, vendor, warning: undefined }
      if (output === undefined) warnings.push(...withoutTool(vendor, devices))
    } catch (error) {
      warnings.push(`${tool} failed, so models run on the CPU: ${(error as Error).message}`)
    }
  }
  return { list: [], vendor: undefined, warning: warnings[0] }
}

function withoutTool({ tool, node }: Vendor, devices: string): string[] {
  const path = join(devices, node ?? '')
  if (node === undefined || !existsSync(path)) return []
  const why = `${path} exists, but ${tool} is not installed, so models run on the CPU`
  const cure = 'In a container, NVIDIA_DRIVER_CAPABILITIES must contain utility and compute'
  return [tool === 'nvidia-smi' ? `${why}. ${cure}` : why]
}

/**
 * CUDA's rule: an index, a UUID or its beginning; the list ends at the first name that is no device. Unset:
 * all devices.
 */
function visible(all: readonly Accelerator[], variable: string | undefined): readonly Accelerator[] {
  if (variable === undefined) return all
  const named = variable.split(',').map((text) => {
    const name = text.trim()
    return all.find((each) => each.gpu === name || (name.length > 4 && each.name.startsWith(name)))
  })
  const end = named.indexOf(undefined)
  return (end < 0 ? named : named.slice(0, end)) as Accelerator[]
}

/**
 * The variables of a worker. Its indices are those of the vendor's tool, also where cards differ.
 * @param ids of the GPUs that the process may see; empty: as the server
 */
export function deviceEnv(ids: readonly number[], { list, vendor }: Gpus): Record<string, string> {
  if (vendor === undefined) return {}
  const order: Record<string, string> =
    vendor.tool === 'nvidia-smi' ? { CUDA_DEVICE_ORDER: 'PCI_BUS_ID' } : {}
  if (ids.length === 0) return order
  const names = ids.map((id) => list[id]!.name).join(',')
  return { ...order, ...Object.fromEntries(vendor.variables.map((variable) => [variable, names])) }
}

/**
 * Whether a worker must see its own GPUs alone, as CUDA's numbers are not those of `list`: a process can use
 * one MIG device only.
 */
export function hasParts({ list }: Gpus): boolean {
  return list.some(({ name }) => name.startsWith('MIG-'))
}

/** The utilization of each GPU for describe, by id, in TorchServe's words (Accelerator.java). */
export async function gpuUsage(
  { list }: Gpus,
  env?: NodeJS.ProcessEnv,
): Promise<ReadonlyMap<number, string>> {
  const rows = new Map((await measureAccelerators(env))?.map((row) => [row.gpu, row]))
  const usage = new Map<number, string>()
  for (const [id, { gpu }] of list.entries()) {
    const row = rows.get(gpu)
    if (row === undefined) continue
    const { utilization = 'N/A', memoryUtilization = 'N/A', memoryUsed = 'N/A' } = row
    usage.set(
      id,
      `gpuId::${id} utilization.gpu::${utilization} % utilization.memory::${memoryUtilization} % memory.used::${memoryUsed} MiB`,
    )
  }
  return usage
}

/** The GPUs of one worker. */
export interface DeviceLease {
  /** GPU ids; empty on CPU. A rank group has parallelLevel of them. */
  readonly ids: readonly number[]
  /** Returns the GPUs when the worker is gone. */
  release(): void
}

const CPU: DeviceLease = { ids: [], release: () => undefined }

/**
 * Assigns GPUs to workers, with one account over all models: each gets the GPU with the fewest workers, or
 * for a rank group the group of adjacent GPUs; among equals the next in turn. Without deviceIds, and with
 * several GPUs, GPU 1 comes first, as in TorchServe (WorkLoadManager.java).
 */
export class Devices {
  /** Workers on each GPU, by id. */
  readonly #users: number[]
  /** The slot whose turn it is, of models with slots of their own. */
  readonly #next = new WeakMap<ModelSettings, number>()
  #nextPlain = 1

  /** @param count number of GPUs of this server */
  constructor(count: number) {
    this.#users = Array<number>(count).fill(0)
  }

  assign(settings: ModelSettings): DeviceLease {
    const { deviceType, deviceIds, parallelLevel } = settings
    const slots = groups(deviceIds ?? [...this.#users.keys()], Math.max(1, parallelLevel))
    if (deviceType === 'cpu' || slots.length === 0) return CPU
    const isPlain = deviceIds === undefined && parallelLevel === 0
    const next = (isPlain ? this.#nextPlain : (this.#next.get(settings) ?? 0)) % slots.length
    const inTurn = [...slots.keys()].map((step) => (next + step) % slots.length)
    const load = (slot: number): number => slots[slot]!.reduce((sum, id) => sum + this.#users[id]!, 0)
    const best = inTurn.reduce((least, slot) => (load(slot) < load(least) ? slot : least))
    if (isPlain) this.#nextPlain = best + 1
    else this.#next.set(settings, best + 1)
    const ids = slots[best]!
    for (const id of ids) this.#users[id]! += 1
    let held = true
    return {
      ids,
      release: () => {
        if (held) for (const id of ids) this.#users[id]! -= 1
        held = false
      },
    }
  }
}

/** Adjacent GPUs in groups of `size`. A remainder is not used. */
function groups(ids: readonly number[], size: number): number[][] {
  return Array.from({ length: Math.floor(ids.length / size) }, (_, group) => [
    ...ids.slice(group * size, (group + 1) * size),
  ])
}

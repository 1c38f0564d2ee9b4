import { ServeError } from '../../common/errors.ts'
import type { ConfigReader } from './config-reader.ts'
import type { ModelSettings } from './model-settings.ts'

const DEVICE_TYPES = ['cpu', 'gpu'] as const
const PARALLEL_TYPES = ['pp', 'tp', 'pptp', 'custom'] as const

const ONE_MACHINE = 'ranks of Node.js models run on this machine, without torchrun'
const TORCHRUN_ONLY = ['rdzv-backend', 'rdzv-endpoint', 'rdzv-conf', 'monitor-interval', 'node-rank'] as const

/** Devices of a model's workers, from its deviceType and deviceIds. */
export function deviceSettings(
  reader: ConfigReader,
  gpuCount: number,
): Pick<ModelSettings, 'deviceType' | 'deviceIds'> {
  const wanted = reader.word('deviceType', DEVICE_TYPES) ?? 'gpu'
  const deviceType = gpuCount > 0 ? wanted : 'cpu'
  return { deviceType, deviceIds: deviceIds(reader, gpuCount) }
}

/** One id without a GPU invalidates the whole list, as in TorchServe. */
function deviceIds(reader: ConfigReader, gpuCount: number): number[] | undefined {
  const ids = reader.integers('deviceIds')
  const missing = ids?.find((id) => id < 0 || id >= gpuCount)
  if (missing !== undefined) {
    reader.warnings.push(`deviceIds: GPU ${missing} does not exist; the list is ignored`)
    return undefined
  }
  return ids?.length === 0 ? undefined : ids
}

/**
 * Rank groups, from parallelType, parallelLevel and the section `torchrun`. Node.js workers use only those of
 * torchrun's parameters that make sense on one machine.
 * @param node whether the workers run on Node.js; else torchrun itself gets the parameters
 */
export function parallelism(
  reader: ConfigReader,
  node: boolean,
): Pick<ModelSettings, 'parallelType' | 'parallelLevel' | 'threads'> {
  const type = reader.word('parallelType', PARALLEL_TYPES)
  const ownLevel = reader.integer('parallelLevel', 0) ?? 0
  const torchrun = reader.section('torchrun')
  const level = torchrun === undefined ? ownLevel : (torchrun.integer('nproc-per-node', 1) ?? 1)
  const threads = reader.integer('threads', 1) ?? torchrun?.integer('OMP_NUMBER_THREADS', 1)
  for (const warning of torchrun === undefined ? [] : torchrunWarnings(torchrun, node)) {
    reader.warnings.push(`torchrun.${warning}`)
  }
  return type === undefined || level === 0
    ? { parallelType: '', parallelLevel: 0, threads }
    : { parallelType: type, parallelLevel: level, threads }
}

function torchrunWarnings(torchrun: ConfigReader, node: boolean): string[] {
  if (!node) return torchrun.warnings
  for (const key of TORCHRUN_ONLY) torchrun.inert(key, ONE_MACHINE)
  const nodes = torchrun.integer('nnodes', 1) ?? 1
  return nodes > 1 ? [...torchrun.warnings, `nnodes has no effect here: ${ONE_MACHINE}`] : torchrun.warnings
}

/**
 * How many rank groups the GPUs have room for; Infinity on CPU and for models without rank groups.
 * @throws ServeError NO_DEVICE when there is no room for one
 */
export function workersThatFit(settings: ModelSettings, gpuCount: number, model: string): number {
  const { parallelLevel, deviceType, deviceIds: ids } = settings
  if (parallelLevel === 0 || deviceType === 'cpu') return Infinity
  const capacity = Math.floor((ids?.length ?? gpuCount) / parallelLevel)
  if (capacity > 0) return capacity
  throw new ServeError('NO_DEVICE', `No enough gpu devices for model:${model} parallelLevel:${parallelLevel}`)
}

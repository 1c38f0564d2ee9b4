import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LoadMessage, WantedMetrics } from '../../protocol/messages.ts'
import { inheritedEnv } from '../config/inherited-env.ts'
import type { Settings } from '../config/settings.ts'
import type { Model } from '../models/model.ts'
import { REQUEST_OVERHEAD_BYTES } from '../jobs/request-limits.ts'
import type { RankOptions } from './rank-process.ts'

/** The worker's entry; a path only, for the frontend never imports it. */
const WORKER_MAIN = fileURLToPath(new URL('../../backend-worker/main.js', import.meta.url))
/** What a frame holds beyond the bodies in it. */
const FRAME_OVERHEAD_BYTES = 1 << 20
/** How far MASTER_PORT counts up before it starts again. */
const MASTER_PORTS = 20_000
const MAX_PORT = 65535

export interface LaunchContext {
  settings: Settings
  serverVersion: string
  /** Folder for sockets that only this user can enter. */
  socketDir: string
  /** What workers need to send. */
  metrics: WantedMetrics
  /** What CUDA calls the GPUs, by their id. */
  gpus: readonly string[]
}

/** One worker as it starts: `serial` names this start, `devices` are the ids of its GPUs. */
export interface Start {
  readonly workerId: number
  readonly serial: string
  readonly devices: readonly number[]
}

/** Command lines, environments and sockets of the processes of one worker. */
export function rankOptions(model: Model, start: Start, context: LaunchContext): RankOptions[] {
  const { settings } = context
  const size = Math.max(1, model.settings.parallelLevel)
  const requestBytes = settings.maxRequestSize + REQUEST_OVERHEAD_BYTES
  const toWorker = requestBytes * model.settings.batchSize + FRAME_OVERHEAD_BYTES
  const env = { ...inheritedEnv(settings.blacklistEnvVars), ...deviceEnv(start.devices, context.gpus) }
  return Array.from({ length: size }, (_, rank) => {
    const socketPath = join(context.socketDir, `${start.serial}.${rank}`)
    return {
      rank,
      commandLine: {
        command: process.execPath,
        args: [
          WORKER_MAIN,
          '--sock-type',
          'unix',
          '--sock-name',
          socketPath,
          '--max-frame-bytes',
          String(toWorker),
        ],
        env: { ...env, ...rankEnv(rank, size, start, context), ...threadEnv(model) },
        cwd: model.prepared.modelDir,
      },
      socketPath,
      maxFrameBytes: settings.maxResponseSize + FRAME_OVERHEAD_BYTES,
    }
  })
}

export function loadMessage(model: Model, devices: readonly number[], context: LaunchContext): LoadMessage {
  const { settings } = context
  return {
    type: 'load',
    modelName: model.name,
    modelVersion: model.version,
    modelDir: model.prepared.modelDir,
    handlerPath: model.prepared.handlerPath ?? '',
    handlerEntry: model.prepared.handlerEntry,
    manifest: model.prepared.manifest,
    modelConfig: model.prepared.modelConfig,
    batchSize: model.settings.batchSize,
    gpuId: devices[0] ?? -1,
    serverVersion: context.serverVersion,
    maxResponseBytes: settings.maxResponseSize,
    maxUnsentBytes: Math.max(settings.maxResponseSize, 4 * model.settings.streamWindowSize),
    decodeInput: settings.decodeInputRequest,
    continuousBatching: model.settings.continuousBatching,
    sequenceHeaders: { ...model.sequenceHeaders },
    metrics: context.metrics,
    limitMaxImagePixels: settings.limitMaxImagePixels,
    envelope: model.envelope,
  }
}

/** The usual variables of a distributed run, as torchrun sets them (spec 2.4). */
function rankEnv(
  rank: number,
  size: number,
  { workerId }: Start,
  { settings }: LaunchContext,
): Record<string, string> {
  const first = settings.initialDistributionPort
  const ports = Math.min(MASTER_PORTS, MAX_PORT + 1 - first)
  return {
    RANK: String(rank),
    LOCAL_RANK: String(rank),
    WORLD_SIZE: String(size),
    LOCAL_WORLD_SIZE: String(size),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(first + ((((workerId - first) % ports) + ports) % ports)),
  }
}

/** A library that takes the first GPU it sees takes the worker's own; on CPU nothing is hidden. */
export function deviceEnv(devices: readonly number[], gpus: readonly string[]): Record<string, string> {
  if (devices.length === 0) return {}
  return { CUDA_VISIBLE_DEVICES: devices.map((id) => gpus[id]!).join(',') }
}

export function threadEnv({ settings }: Model): Record<string, string> {
  return settings.ompThreads === undefined ? {} : { OMP_NUM_THREADS: String(settings.ompThreads) }
}

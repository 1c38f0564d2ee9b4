import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { LoadMessage, WantedMetrics } from '../../protocol/messages.ts'
import type { Settings } from '../config/settings.ts'
import type { Model } from '../models/model.ts'
import { REQUEST_OVERHEAD_BYTES } from '../models/request-limits.ts'
import type { RankOptions } from './rank-process.ts'

/** The worker's entry; a path only, for the frontend never imports it. */
const WORKER_MAIN = fileURLToPath(new URL('../../backend-worker/main.js', import.meta.url))
/** What a frame holds beyond the bodies in it. */
const FRAME_OVERHEAD_BYTES = 1 << 20
/** TorchServe's first port of a rank group's rendezvous (initial_distribution_port). */
const FIRST_MASTER_PORT = 29500

export interface LaunchContext {
  settings: Settings
  serverVersion: string
  /** Folder for sockets that only this user can enter. */
  socketDir: string
  /** What workers need to send. */
  metrics: WantedMetrics
}

/** Command lines, environments and sockets of the processes of one worker. `serial` names this start of this worker. */
export function rankOptions(
  model: Model,
  workerId: number,
  serial: string,
  context: LaunchContext,
): RankOptions[] {
  const { settings } = context
  const size = Math.max(1, model.settings.parallelLevel)
  const requestBytes = settings.maxRequestSize + REQUEST_OVERHEAD_BYTES
  const toWorker = requestBytes * model.settings.batchSize + FRAME_OVERHEAD_BYTES
  return Array.from({ length: size }, (_, rank) => {
    const socketPath = join(context.socketDir, `${serial}.${rank}`)
    return {
      rank,
      args: [
        WORKER_MAIN,
        '--sock-type',
        'unix',
        '--sock-name',
        socketPath,
        '--max-frame-bytes',
        String(toWorker),
      ],
      env: { ...inheritedEnv(settings.blacklistEnvVars), ...rankEnv(rank, size, workerId) },
      cwd: model.prepared.modelDir,
      socketPath,
      maxFrameBytes: settings.maxResponseSize + FRAME_OVERHEAD_BYTES,
    }
  })
}

/** What a process that was killed could not remove itself. */
export function removeSockets(ranks: readonly RankOptions[]): void {
  for (const { socketPath } of ranks) rmSync(socketPath, { force: true })
}

export function loadMessage(model: Model, context: LaunchContext): LoadMessage {
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
    gpuId: -1,
    serverVersion: context.serverVersion,
    maxResponseBytes: settings.maxResponseSize,
    maxUnsentBytes: Math.max(settings.maxResponseSize, 4 * model.settings.streamWindowSize),
    decodeInput: settings.decodeInputRequest,
    continuousBatching: model.settings.continuousBatching,
    sequenceHeaders: { ...model.sequenceHeaders },
    metrics: context.metrics,
  }
}

/** The usual variables of a distributed run, as torchrun sets them (spec 2.4). */
function rankEnv(rank: number, size: number, workerId: number): Record<string, string> {
  return {
    RANK: String(rank),
    LOCAL_RANK: String(rank),
    WORLD_SIZE: String(size),
    LOCAL_WORLD_SIZE: String(size),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(FIRST_MASTER_PORT + (workerId % 1000)),
  }
}

function inheritedEnv(blacklist: RegExp | undefined): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !blacklist?.test(name)) env[name] = value
  }
  return env
}

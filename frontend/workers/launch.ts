import { join, sep } from 'node:path'
import { builtModule, packageRoot, serverModules } from '../../model-archiver/package-root.ts'
import type { LoadMessage, WantedMetrics } from '../../protocol/messages.ts'
import type { Settings } from '../config/settings.ts'
import type { Model } from '../models/model.ts'
import { batchFrameBytes } from '../jobs/job-request.ts'
import { deviceEnv, type Gpus } from './gpus.ts'
import { inheritedEnv, withThreads } from './worker-env.ts'
import { seesOwnGpus } from './python/command-line.ts'
import { type OwnPython, OWN_WORKER } from './python/own-worker.ts'
import type { RankOptions } from './rank-process.ts'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { fillWrapper } from '../config/worker-wrapper.ts'

/** The worker's entry point. Only a path, because the frontend must not import the worker. */
const WORKER_MAIN = builtModule('backend-worker/main.js')
/** Bytes that a frame may contain besides the bodies. */
const FRAME_OVERHEAD_BYTES = 1 << 20
/** MASTER_PORT counts up to this offset and then starts again. */
const MASTER_PORTS = 20_000
const MAX_PORT = 65535

export interface LaunchContext {
  settings: Settings
  serverVersion: string
  /** Folder for sockets that only the server's user can enter. */
  socketDir: string
  /** The metrics that the frontend needs. */
  metrics: WantedMetrics
  gpus: Gpus
  warn(message: string): void
}

/** One start of a worker. */
export interface Start {
  readonly workerId: number
  /** Identifies the start. */
  readonly serial: string
  /** Ids of its GPUs. */
  readonly devices: readonly number[]
  /** Of each of its processes. */
  readonly threads: number
  /** Whether the worker still starts: it may be stopped while an interpreter is asked. */
  wanted(): boolean
}

/**
 * Command lines, environments and sockets for the processes of one worker.
 * @param folder of this start
 * @param python that runs the handler; undefined: Node.js does
 */
export function rankOptions(
  model: Model,
  start: Start,
  context: LaunchContext,
  folder: string,
  python?: OwnPython,
): RankOptions[] {
  const { settings } = context
  const startsRanks = python !== undefined && model.settings.parallelType === 'custom'
  const size = startsRanks ? 1 : Math.max(1, model.settings.parallelLevel)
  const toWorker = batchFrameBytes(settings.maxRequestSize, model.settings.batchSize) + FRAME_OVERHEAD_BYTES
  const { prepared } = model
  const env = {
    ...withThreads(inheritedEnv(settings), start.threads, model),
    ...deviceEnv(python === undefined || seesOwnGpus(model, context.gpus) ? start.devices : [], context.gpus),
  }
  return Array.from({ length: size }, (_, rank) => {
    const socketPath = join(folder, `${start.workerId}.${rank}`)
    const workerArgs = [
      python === undefined ? WORKER_MAIN : OWN_WORKER,
      ...['--sock-type', 'unix', '--sock-name', socketPath],
      ...['--max-frame-bytes', String(toWorker)],
      ...(python?.packages === undefined ? [] : ['--packages', python.packages]),
    ]
    const program = { command: python?.python ?? process.execPath, args: workerArgs }
    return {
      rank,
      commandLine: {
        ...wrapped(program, model.settings.workerWrapper, prepared, folder),
        workerArgs,
        cwd: prepared.modelDir,
        env: { ...env, ...rankEnv(rank, size, start, context) },
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
    closedModules: [...model.prepared.closedModules],
    manifest: model.prepared.manifest,
    modelConfig: model.prepared.modelConfig,
    batchSize: model.settings.batchSize,
    gpuId: devices[0] ?? -1,
    serverVersion: context.serverVersion,
    maxResponseBytes: settings.maxResponseSize,
    maxUnsentBytes: Math.max(settings.maxResponseSize, 4 * model.settings.streamWindowSize),
    decodeInput: settings.decodeInputRequest,
    maxJsonElements: settings.maxRequestElements,
    continuousBatching: model.settings.continuousBatching,
    sequenceHeaders: { ...model.sequenceHeaders },
    metrics: context.metrics,
    limitMaxImagePixels: settings.limitMaxImagePixels,
    envelope: model.envelope,
  }
}

/** The variables of PyTorch's distributed environment, as torchrun sets them (PyTorch's docs, "torchrun"). */
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

/** A program that runs a model's code, and its arguments. */
export interface Program {
  readonly command: string
  readonly args: readonly string[]
}

/**
 * The program behind the wrapper of its model (docs/worker-wrapper.md).
 * @param wrapper words with placeholders, from the server's configuration; none: no wrapper
 * @param workerDir the folder that the program writes to
 */
export function wrapped(
  { command, args }: Program,
  wrapper: readonly string[],
  { modelDir, workDir }: Pick<PreparedModel, 'modelDir' | 'workDir'>,
  workerDir: string,
): Program {
  const [program, ...options] = fillWrapper(wrapper, {
    model_dir: modelDir,
    work_dir: workDir,
    worker_dir: workerDir,
    server_dir: serverDir(),
  })
  return program === undefined
    ? { command, args }
    : { command: program, args: [...options, command, ...args] }
}

/** The folder that contains the server's package and the packages that it uses. */
function serverDir(): string {
  const root = packageRoot()
  const modules = serverModules(root)
  return modules !== undefined && root.startsWith(modules + sep) ? modules : root
}

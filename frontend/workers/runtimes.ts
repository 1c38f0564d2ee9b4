import { ServeError } from '../../common/errors.ts'
import type { Model } from '../models/model.ts'
import { findPython } from './python/environment/environment.ts'
import { hasParts } from './gpus.ts'
import { type LaunchContext, loadMessage, rankOptions, type Start } from './launch.ts'
import { type PythonLaunch, pythonLaunch, usesTorchrun } from './python/command-line.ts'
import { findOwnPython, type OwnPython } from './python/own-worker.ts'
import { checkDevice } from './python/device-check.ts'
import { PythonGroup } from './python/python-group.ts'
import { RankGroup } from './rank-group.ts'
import { createWorkerFolder } from './worker-folder.ts'
import type { RankOptions } from './rank-process.ts'
import type { WorkerGroup, WorkerGroupEvents } from './worker-group.ts'

/** Bytes that the streams of one Python worker may have together beyond their windows. */
const MAX_UNSENT_TOGETHER = 32 * 1024 * 1024

/** The processes of one start of a worker. */
export type StartGroup = (start: Start, events: WorkerGroupEvents) => WorkerGroup | Promise<WorkerGroup>

type CreateGroup = (
  model: Model,
  start: Start,
  context: LaunchContext,
  events: WorkerGroupEvents,
) => WorkerGroup | Promise<WorkerGroup>

const KINDS: Readonly<Record<Model['prepared']['runtime'], CreateGroup>> = {
  node: ownGroup,
  python: pythonGroup,
  python3: pythonGroup,
  LSP: () => {
    throw new ServeError('INVALID_MODEL', 'C++ workers (runtime LSP) are not supported')
  },
}

/**
 * The processes of one start of a worker, according to the model's runtime. Never throws or rejects: what
 * keeps them from being started rejects `load`.
 */
export const createGroup: CreateGroup = (model, start, context, events) => {
  try {
    const group = KINDS[model.prepared.runtime](model, start, context, events)
    return group instanceof Promise ? group.catch(refused) : group
  } catch (cause) {
    return refused(cause)
  }
}

function refused(cause: unknown): WorkerGroup {
  if (cause instanceof ServeError) return refusedGroup(cause)
  const message = `The worker could not be started: ${(cause as Error).message}`
  return refusedGroup(new ServeError('WORKER_START_FAILED', message, { cause }))
}

function ownGroup(
  model: Model,
  start: Start,
  context: LaunchContext,
  events: WorkerGroupEvents,
  python?: OwnPython,
): WorkerGroup {
  const { settings } = model
  const { path, cleanUp } = createWorkerFolder(context)
  let ranks: RankOptions[]
  try {
    ranks = rankOptions(model, start, context, path, python)
  } catch (error) {
    cleanUp()
    throw error
  }
  return new RankGroup(
    {
      ranks,
      cleanUp,
      requestsToRankZeroOnly: settings.parallelType === 'pp',
      takesBatchesAhead: python === undefined,
      load: loadMessage(model, start.devices, context),
      startupTimeoutMs: settings.startupTimeout * 1000,
    },
    events,
  )
}

/** Our own worker, unless TorchServe is installed for a handler that is written for it. */
async function pythonGroup(
  model: Model,
  start: Start,
  context: LaunchContext,
  events: WorkerGroupEvents,
): Promise<WorkerGroup> {
  const own = await findOwnPython(context.settings, model.prepared)
  if (!start.wanted()) throw new ServeError('WORKER_START_FAILED', 'The worker was stopped')
  return own === undefined
    ? torchserveGroup(model, start, context, events)
    : ownGroup(model, start, context, events, own)
}

function torchserveGroup(
  model: Model,
  start: Start,
  context: LaunchContext,
  events: WorkerGroupEvents,
): WorkerGroup {
  const { settings, prepared } = model
  const { maxResponseSize, limitMaxImagePixels } = context.settings
  const maxUnsentBytes = Math.max(maxResponseSize, 4 * settings.streamWindowSize)
  const { path, cleanUp } = createWorkerFolder(context)
  return new PythonGroup(
    {
      cleanUp,
      launch: async () => {
        const python = await findPython(context.settings, prepared)
        const launch = pythonLaunch(model, start, context, python, path)
        await checkGpu(launch, context, events)
        return launch
      },
      load: {
        modelName: model.name,
        modelDir: prepared.modelDir,
        batchSize: settings.batchSize,
        handler: prepared.manifest.model.handler ?? prepared.modelDir,
        gpuId: start.devices.length > 0 && hasParts(context.gpus) ? 0 : (start.devices[0] ?? -1),
        envelope: model.envelope ?? '',
        limitMaxImagePixels,
      },
      torchrunRanks: usesTorchrun(model) ? settings.parallelLevel : 0,
      requestsToRankZeroOnly: settings.parallelType === 'pp',
      async: settings.asyncCommunication,
      startupTimeoutMs: settings.startupTimeout * 1000,
      continuousBatching: settings.continuousBatching,
      maxResponseBytes: maxResponseSize,
      maxUnsentBytes,
      maxUnsentBytesTogether: Math.max(maxUnsentBytes, MAX_UNSENT_TOGETHER),
    },
    events,
  )
}

/** @throws ServeError NO_DEVICE when the GPU cannot be used and require_gpu is set */
async function checkGpu(
  { check }: PythonLaunch,
  { settings: { requireGpu } }: LaunchContext,
  events: WorkerGroupEvents,
): Promise<void> {
  if (check === undefined) return
  const checking = checkDevice(check.commandLine, check.key)
  if (!requireGpu) {
    void checking.then((words) => words !== undefined && events.onUnusableDevice(words))
    return
  }
  const words = await checking
  if (words !== undefined) throw new ServeError('NO_DEVICE', `The GPU cannot be used (require_gpu): ${words}`)
}

const nothing = (): void => undefined

/** A worker that cannot be started here: it has no processes, and loading it fails. */
function refusedGroup(reason: ServeError): WorkerGroup {
  return {
    pid: -1,
    pids: [],
    finishingRanks: 1,
    unsentBytes: 0,
    isNative: false,
    takesBatchesAhead: false,
    methods: [],
    load: () => Promise.reject(reason),
    send: nothing,
    sendToFirst: nothing,
    stop: () => Promise.resolve(true),
    kill: nothing,
    exited: () => Promise.resolve(),
  }
}

import { join } from 'node:path'
import { packageRoot } from '../../../model-archiver/package-root.ts'
import { ConfigReader } from '../../models/config-reader.ts'
import type { Model } from '../../models/model.ts'
import { defaultMetricsConfig } from '../../package-info.ts'
import type { PythonEnvironment } from './environment/environment.ts'
import { inheritedEnv, withThreads } from '../worker-env.ts'
import { deviceEnv, type Gpus, hasParts } from '../gpus.ts'
import { type LaunchContext, type Program, type Start, wrapped } from '../launch.ts'
import type { CommandLine } from '../worker-process.ts'
import { DEVICE_SCRIPT } from './device-check.ts'
import { pythonVariables } from './environment-variables.ts'

/** Path of TorchServe's worker within its package. */
const WORKER = join('ts', 'model_service_worker.py')
/** Runs it so that threads of an async worker do not mix their frames. */
const ASYNC_WORKER = join(packageRoot(), 'libexec', 'async-worker.py')

/** The command that starts one worker of TorchServe, and the addresses on which its ranks listen. */
export interface PythonLaunch {
  readonly commandLine: CommandLine
  readonly socketPaths: readonly string[]
  /** Tries the worker's GPU in a process that is started like it; undefined: it has none. */
  readonly check: { readonly commandLine: CommandLine; readonly key: string } | undefined
}

/**
 * Whether torchrun starts the ranks. With `custom` the handler does (TorchServe's
 * docs/large_model_inference.md).
 */
export function usesTorchrun({ settings }: Model): boolean {
  return settings.parallelLevel > 0 && settings.parallelType !== 'custom'
}

/** Else it sees all of them, and uses the one with its number, as in TorchServe. */
export function seesOwnGpus({ settings }: Model, gpus: Gpus): boolean {
  return settings.parallelLevel > 0 || hasParts(gpus)
}

/**
 * The command line, as in TorchServe's WorkerLifeCycle.java.
 * @param folder of this start
 */
export function pythonLaunch(
  model: Model,
  start: Start,
  context: LaunchContext,
  python: PythonEnvironment,
  folder: string,
): PythonLaunch {
  const { settings } = context
  const ranks = usesTorchrun(model) ? model.settings.parallelLevel : 1
  const socketPaths = Array.from({ length: ranks }, (_, rank) =>
    join(folder, `.ts.sock.${start.workerId + rank}`),
  )
  const env = {
    ...withThreads(inheritedEnv(settings), start.threads, model),
    ...pythonVariables(model, settings, python),
    ...deviceEnv(seesOwnGpus(model, context.gpus) ? start.devices : [], context.gpus),
    ...(usesTorchrun(model) ? { LOGLEVEL: 'INFO' } : {}),
  }
  const { asyncCommunication, workerWrapper } = model.settings
  const workerArgs = [
    ...(asyncCommunication ? [ASYNC_WORKER] : []),
    join(python.torchserve, WORKER),
    ...['--sock-type', 'unix', '--sock-name', socketPaths[0]!],
    ...['--metrics-config', settings.metricsConfig ?? defaultMetricsConfig],
    ...(asyncCommunication ? ['--async'] : []),
  ]
  const launcher = usesTorchrun(model) ? torchrun(model, start.workerId, join(folder, 'torchrun')) : []
  const program = { command: python.python, args: [...launcher, ...workerArgs] }
  const wrap = (each: Program): Omit<CommandLine, 'workerArgs'> => ({
    ...wrapped(each, workerWrapper, model.prepared, folder),
    ...{ env, cwd: model.prepared.modelDir },
  })
  const device = deviceOf(model, start, context.gpus)
  const tried = { command: python.python, args: ['-c', DEVICE_SCRIPT, device ?? ''] }
  return {
    commandLine: { ...wrap(program), workerArgs },
    socketPaths,
    check:
      device === undefined
        ? undefined
        : {
            commandLine: { ...wrap(tried), workerArgs: tried.args },
            key: JSON.stringify([tried, workerWrapper, deviceEnv(start.devices, context.gpus)]),
          },
  }
}

/** The device of its first process, as PyTorch names it there; undefined: the CPU. */
function deviceOf(model: Model, { devices }: Start, gpus: Gpus): string | undefined {
  const [first] = devices
  if (first === undefined || gpus.vendor === undefined) return undefined
  return `${gpus.vendor.device}:${seesOwnGpus(model, gpus) ? 0 : first}`
}

/**
 * The interpreter's `torchrun`. Its own restarts are disabled, because the server restarts the whole worker.
 * Without an endpoint each group uses a port of its own, so groups do not depend on each other.
 */
function torchrun(model: Model, workerId: number, logs: string): string[] {
  const reader = new ConfigReader(model.prepared.modelConfig).section('torchrun') ?? new ConfigReader({})
  const backend = reader.text('rdzv-backend') ?? 'c10d'
  const endpoint = reader.text('rdzv-endpoint') ?? (backend === 'c10d' ? 'localhost:0' : undefined)
  return [
    ...['-m', 'torch.distributed.run'],
    ...['--nnodes', String(reader.integer('nnodes', 1) ?? 1)],
    ...['--nproc-per-node', String(model.settings.parallelLevel)],
    ...['--log-dir', logs],
    ...['--rdzv-backend', backend],
    ...(endpoint === undefined ? [] : ['--rdzv-endpoint', endpoint]),
    ...['--rdzv-id', `${model.name}_${workerId}`],
    ...['--max-restarts', '0'],
  ]
}

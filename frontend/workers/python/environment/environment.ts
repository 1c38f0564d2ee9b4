import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Runtime } from '../../../../model-archiver/handler-entry.ts'
import type { Settings } from '../../../config/settings.ts'
import { askOnce } from './ask-once.ts'
import { missingPackages } from './missing.ts'
import type { Probe } from './probe.ts'

/** The Python environment of a model's workers. */
export interface PythonEnvironment {
  /** Absolute path of the interpreter. */
  readonly python: string
  /** Version of the interpreter, such as `3.11.7`. */
  readonly version: string
  /**
   * Absolute path of the folder with TorchServe's package `ts`: the worker is
   * `<torchserve>/ts/model_service_worker.py`.
   */
  readonly torchserve: string
  /** Version of TorchServe, if it reports one. */
  readonly torchserveVersion: string | undefined
  /** Version of PyTorch, if it reports one. */
  readonly torch: string | undefined
  /**
   * Folder of packages that were installed for this model only. It follows the model's folder in the worker's
   * PYTHONPATH.
   */
  readonly packages: string | undefined
}

/**
 * What determines a model's Python: its temporary folder (PreparedModel.workDir) and the runtime of its
 * manifest.
 */
export interface PythonModel {
  readonly workDir: string
  readonly runtime: Runtime
}

type PythonSettings = Pick<Settings, 'python' | 'modelServerHome'>

/**
 * The Python environment of a model: its own virtual environment if it has one, else the interpreter of the
 * key `python` (`python3` if there is no `python`, and for the runtime python3). Each interpreter is probed
 * once.
 * @param model undefined: a model without an environment or packages of its own
 * @throws ServeError WORKER_START_FAILED with what is missing and the command that installs it
 */
export async function findPython(settings: PythonSettings, model?: PythonModel): Promise<PythonEnvironment> {
  const { found, packages } = await askModel(settings, model)
  return environment(found, packages)
}

/**
 * What the interpreter of a model reports, whatever it lacks, and the folder of the model's own packages.
 * @throws ServeError WORKER_START_FAILED when there is no interpreter
 */
export async function askModel(
  settings: PythonSettings,
  model?: PythonModel,
): Promise<{ found: Probe; packages: string | undefined }> {
  const packages = model && existing(packagesFolder(model))
  const found = await askOnce(commandsFor(settings, model), settings.modelServerHome ?? '', packages)
  return { found, packages }
}

/**
 * The interpreter that the settings select, without a check of its packages.
 * @throws ServeError WORKER_START_FAILED when there is none
 */
export async function findInterpreter(settings: PythonSettings, runtime: Runtime): Promise<string> {
  const commands = commandsFor(settings, { workDir: '', runtime })
  return (await askOnce(commands, settings.modelServerHome ?? '', undefined)).python
}

/** The folder of a model's virtual environment, if it has one. */
export function venvFolder({ workDir }: Pick<PythonModel, 'workDir'>): string {
  return join(workDir, 'venv')
}

/** The folder of a model's own packages, if it has some and no virtual environment. */
export function packagesFolder({ workDir }: Pick<PythonModel, 'workDir'>): string {
  return join(workDir, 'packages')
}

export function venvPython(venv: string): string {
  return process.platform === 'win32' ? join(venv, 'Scripts', 'python.exe') : join(venv, 'bin', 'python')
}

/** The commands to try, in order; the first that runs is used. */
function commandsFor({ python }: PythonSettings, model: PythonModel | undefined): string[] {
  const own = model && existing(venvPython(venvFolder(model)))
  if (own !== undefined) return [own]
  if (model?.runtime === 'python3') return ['python3']
  return python === 'python' ? ['python', 'python3'] : [python]
}

function environment(found: Probe, packages: string | undefined): PythonEnvironment {
  const { python, version, torchserve, missing } = found
  if (missing.length > 0 || torchserve === null) throw missingPackages(found)
  return {
    python,
    version,
    torchserve,
    torchserveVersion: found.torchserveVersion ?? undefined,
    torch: found.torch ?? undefined,
    packages,
  }
}

function existing(path: string): string | undefined {
  return existsSync(path) ? path : undefined
}

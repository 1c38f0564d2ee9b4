import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import type { Runtime } from '../../model-archiver/runtime.ts'
import type { Settings } from '../config/settings.ts'
import { missingInterpreter, missingPackages } from './missing.ts'
import { probe, type Probe, type ProbeFailure } from './probe.ts'

/** What the workers of a Python model run on. */
export interface PythonEnvironment {
  /** Absolute path of the interpreter. */
  readonly python: string
  /** Of the interpreter, like `3.11.7`. */
  readonly version: string
  /** Absolute folder that holds TorchServe's package `ts`, so the worker is `<torchserve>/ts/model_service_worker.py`. */
  readonly torchserve: string
  /** Version of TorchServe, where it says it. */
  readonly torchserveVersion: string | undefined
  /** Version of PyTorch, where it says it. */
  readonly torch: string | undefined
  /** Folder of packages that were installed for this model alone; on the worker's PYTHONPATH behind the model's folder. */
  readonly packages: string | undefined
}

/** What decides on a model's Python: its temporary folder (PreparedModel.workDir) and the runtime of its manifest. */
export interface PythonModel {
  readonly workDir: string
  readonly runtime: Runtime
}

type PythonSettings = Pick<Settings, 'python' | 'modelServerHome'>

/** More interpreters than this are asked again. */
const MAX_KNOWN = 256
/** What was found, and what is being looked for; what failed is asked again. */
const known = new Map<string, Promise<PythonEnvironment>>()

/**
 * The Python environment of a model: its own virtual environment if it has one, else the interpreter of the key `python`
 * (`python3` where there is no `python`, and for the runtime python3). Asked once for each interpreter.
 * @param model undefined: as for a model without an environment or packages of its own
 * @throws ServeError WORKER_START_FAILED that says what is missing and the command that installs it
 */
export function findPython(settings: PythonSettings, model?: PythonModel): Promise<PythonEnvironment> {
  const packages = model && existing(packagesFolder(model))
  const commands = commandsFor(settings, model)
  const key = JSON.stringify([commands, settings.modelServerHome, packages])
  const found = known.get(key)
  if (found !== undefined) return found
  const looking = look(commands, settings.modelServerHome ?? '', packages)
  known.set(key, looking)
  looking.catch(() => known.delete(key))
  if (known.size > MAX_KNOWN) known.delete(known.keys().next().value!)
  return looking
}

/** Where a model's virtual environment is, if it has one. */
export function venvFolder({ workDir }: Pick<PythonModel, 'workDir'>): string {
  return join(workDir, 'venv')
}

/** Where a model's own packages are, if it has some and no virtual environment. */
export function packagesFolder({ workDir }: Pick<PythonModel, 'workDir'>): string {
  return join(workDir, 'packages')
}

export function venvPython(venv: string): string {
  return process.platform === 'win32' ? join(venv, 'Scripts', 'python.exe') : join(venv, 'bin', 'python')
}

/** What is tried, first things first; the first that can be run counts. */
function commandsFor({ python }: PythonSettings, model: PythonModel | undefined): string[] {
  const own = model && existing(venvPython(venvFolder(model)))
  if (own !== undefined) return [own]
  if (model?.runtime === 'python3') return ['python3']
  return python === 'python' ? ['python', 'python3'] : [python]
}

async function look(
  commands: readonly string[],
  home: string,
  packages: string | undefined,
): Promise<PythonEnvironment> {
  const pythonPath = [process.env['PYTHONPATH'], packages].filter((part) => part).join(delimiter)
  const failures: string[] = []
  for (const command of commands) {
    const found: Probe | ProbeFailure = await probe(command, home, pythonPath)
    if (!('failure' in found)) return environment(found, packages)
    failures.push(`${command}: ${found.failure}`)
  }
  throw missingInterpreter(failures)
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

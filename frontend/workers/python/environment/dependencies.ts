import type { PreparedModel } from '../../../../model-archiver/prepare.ts'
import { inside } from '../../../../model-archiver/handler-entry.ts'
import { ServeError } from '../../../../common/errors.ts'
import type { Settings } from '../../../config/settings.ts'
import { versionSettings } from '../../../config/version-settings.ts'
import { inheritedEnv } from '../../worker-env.ts'
import { wrapped } from '../../launch.ts'
import { findInterpreter, packagesFolder, venvFolder, venvPython } from './environment.ts'
import { isolated, WORKER_PATH } from './own-python.ts'
import { runLogged } from './run-logged.ts'

export interface InstallOptions {
  readonly settings: Settings
  /** Cancels the installation. */
  readonly signal: AbortSignal
  readonly log: (line: string) => void
}

/**
 * Creates a virtual environment that can also use the packages of the interpreter that creates it, even if
 * that one is virtual itself.
 */
const MAKE_VENV = `${WORKER_PATH}
import sysconfig, venv
folder = sys.argv[1]
venv.create(folder, clear=True, with_pip=True)
packages = sysconfig.get_path("purelib", vars={"base": folder, "platbase": folder})
inherited = site.getsitepackages() + list(filter(None, [user_packages()]))
with open(os.path.join(packages, "inherited.pth"), "w") as file:
    for path in inherited:
        file.write("import site; site.addsitedir(%r)\\n" % path)
`

/**
 * Prepares a Python model: its virtual environment (`useVenv` in its model-config) and its requirements (key
 * install_py_dep_per_model), in the model's temporary folder. Both disappear with it. Other models get
 * nothing. The model's wrapper is put before these commands, too, because requirements are code.
 * @param name as the model is registered
 * @throws ServeError DEPENDENCIES_FAILED with TorchServe's messages; WORKER_START_FAILED without Python
 */
export async function installDependencies(
  name: string,
  model: PreparedModel,
  options: InstallOptions,
): Promise<void> {
  if (model.runtime !== 'python' && model.runtime !== 'python3') return
  const useVenv = model.modelConfig['useVenv'] === true
  const { requirementsFile } = model.manifest.model
  const install = options.settings.installPyDepPerModel && requirementsFile !== undefined
  if (!useVenv && !install) return
  const python = await findInterpreter(options.settings, model.runtime)
  if (useVenv) await makeVenv(name, model, python, options)
  if (install) await installRequirements(name, model, useVenv ? undefined : python, requirementsFile, options)
}

async function makeVenv(
  name: string,
  model: PreparedModel,
  python: string,
  options: InstallOptions,
): Promise<void> {
  const problem = await run(python, ['-c', MAKE_VENV, venvFolder(model)], name, model, options)
  if (problem !== undefined) throw failed(`Virtual environment creation failed for model ${name}`, problem)
  options.log(`Created virtual environment for model ${name}: ${venvFolder(model)}`)
}

/** @param python undefined: the model's virtual environment */
async function installRequirements(
  name: string,
  model: PreparedModel,
  python: string | undefined,
  file: string,
  options: InstallOptions,
): Promise<void> {
  const target =
    python === undefined ? ['--upgrade-strategy', 'only-if-needed'] : ['--target', packagesFolder(model)]
  const requirements = inside(model.modelDir, file)
  const message = `Custom pip package installation failed for model ${name}`
  if (requirements === undefined) throw failed(message, `${file} must be inside the model`)
  const problem = await run(
    python ?? venvPython(venvFolder(model)),
    [
      ...['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--progress-bar', 'off'],
      ...['-U', ...target, '-r', requirements],
    ],
    name,
    model,
    options,
  )
  if (problem !== undefined) throw failed(message, problem)
  options.log(`Installed custom pip packages for model ${name}`)
}

function run(
  command: string,
  args: readonly string[],
  name: string,
  model: PreparedModel,
  { settings, signal, log }: InstallOptions,
): Promise<string | undefined> {
  const { workerWrapper = settings.workerWrapper } = versionSettings(settings, name, model.version)
  return runLogged(wrapped({ command, args: isolated(args) }, workerWrapper, model, model.workDir), {
    env: inheritedEnv(settings),
    // As in TorchServe: paths in requirements are relative to the model.
    cwd: model.modelDir,
    limitMs: settings.downloadTimeout * 1000,
    signal,
    log,
  })
}

function failed(message: string, detail: string): ServeError {
  return new ServeError('DEPENDENCIES_FAILED', message, { detail })
}

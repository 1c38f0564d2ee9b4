import type { PreparedModel } from '../../model-archiver/prepare.ts'
import type { Settings } from '../config/settings.ts'
import { findPython, type PythonEnvironment } from '../workers/python/environment/environment.ts'
import { findOwnPython, OWN_PACKAGES } from '../workers/python/own-worker.ts'
import { readHandler } from '../workers/python/environment/read-handler.ts'
import type { ArchiveReport } from './check-archive.ts'
import { describeFailure } from './describe-failure.ts'
import { ownValue } from '../../common/json.ts'

/**
 * Checks what a Python archive needs: an interpreter, the packages of its worker, a handler, and its imports.
 */
export async function checkPython(
  prepared: PreparedModel,
  settings: Settings,
  report: ArchiveReport,
): Promise<void> {
  const { handler, requirementsFile } = prepared.manifest.model
  if (prepared.handlerProblem !== undefined) report.broken.push(prepared.handlerProblem.message)
  const installs = requirementsFile !== undefined && settings.installPyDepPerModel
  if (installs) report.runs.push(`${requirementsFile} is installed with pip when the model is registered`)
  let environment: PythonEnvironment
  try {
    environment = await findEnvironment(settings, prepared)
  } catch (error) {
    report.missing.push(describeFailure(error))
    return
  }
  const { python, version, torchserve, torchserveVersion = '', torch } = environment
  const worker =
    torchserve === OWN_PACKAGES
      ? 'The server’s own Python worker'
      : `TorchServe’s own worker ${torchserveVersion}`
  report.runs.push(
    `${worker} on Python ${version} (${python})` + (torch === undefined ? '' : ` with PyTorch ${torch}`),
  )
  if (handler !== undefined) await checkHandler(handler, environment, prepared, installs, report)
}

/** The environment of the worker that would run the model: our own, or TorchServe's. */
async function findEnvironment(settings: Settings, prepared: PreparedModel): Promise<PythonEnvironment> {
  const own = await findOwnPython(settings, prepared)
  if (own === undefined) return findPython(settings, prepared)
  return { ...own, torch: own.torch ?? undefined, torchserve: OWN_PACKAGES, torchserveVersion: undefined }
}

async function checkHandler(
  handler: string,
  environment: PythonEnvironment,
  { modelDir, manifest }: PreparedModel,
  installs: boolean,
  report: ArchiveReport,
): Promise<void> {
  const { file, stock, entry, broken, missing } = await readHandler(environment, modelDir, handler)
  if (file === null)
    report.broken.push(`Handler ${handler} must be in the archive or be one of TorchServe’s.`)
  if (stock) report.runs.push(`TorchServe’s handler ${handler}`)
  const name = handler.split(':')[1] ?? 'handle'
  if (entry === 'none') report.broken.push(`Handler ${handler} must have a class or the function ${name}.`)
  if (entry === 'several')
    report.broken.push(
      `Handler ${handler} has several classes and no function ${name}; it must have exactly one class.`,
    )
  report.missing.push(...broken.map((problem) => `${problem}: not valid in Python ${environment.version}.`))
  const modules = Object.entries(missing)
  if (modules.length === 0) return
  const names = modules.map(([module, importer]) => `${module} (imported by ${importer})`).join(', ')
  if (installs) {
    report.runs.push(`${manifest.model.requirementsFile} must install ${names}`)
    return
  }
  const packages = modules.map(([module]) => ownValue(PACKAGES, module) ?? module)
  const hint = manifest.model.requirementsFile === undefined ? '' : ', or set install_py_dep_per_model=true'
  report.missing.push(
    `Python packages: ${names}. Install them with: ${environment.python} -m pip install ${packages.join(' ')}${hint}.`,
  )
}

/** PyPI names that differ from the module's, for modules that TorchServe's handlers commonly import. */
const PACKAGES: Readonly<Record<string, string>> = {
  ts: 'torchserve',
  PIL: 'pillow',
  yaml: 'pyyaml',
  cv2: 'opencv-python',
  sklearn: 'scikit-learn',
  skimage: 'scikit-image',
}

import { existsSync, readFileSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { packageRoot } from '../../../model-archiver/package-root.ts'
import type { PreparedModel } from '../../../model-archiver/prepare.ts'
import type { Settings } from '../../config/settings.ts'
import { askModel, type Probe } from './environment/environment.ts'

/** The worker for Python handlers that this package carries. It needs no other package. */
export const OWN_WORKER = join(packageRoot(), 'python', 'torchserve_ts', '__main__.py')

const IMPORTS = /^[ \t]*(?:from|import)[ \t]+torchserve_ts\b/m

/** An interpreter that runs a model in our own worker. */
export interface OwnPython extends Pick<Probe, 'python' | 'version' | 'torch'> {
  /** Folder of packages that were installed for this model only. */
  readonly packages: string | undefined
}

/**
 * The interpreter of a model that runs in our own worker: its handler imports `torchserve_ts`, or TorchServe
 * is not installed. Undefined: it runs in TorchServe's worker.
 * @throws ServeError WORKER_START_FAILED when there is no interpreter
 */
export async function findOwnPython(
  settings: Pick<Settings, 'python' | 'modelServerHome'>,
  prepared: PreparedModel,
): Promise<OwnPython | undefined> {
  const file = handlerFile(prepared)
  if (file === undefined) return undefined
  const { found, packages } = await askModel(settings, prepared)
  if (found.torchserve !== null && !IMPORTS.test(readFileSync(file, 'utf8'))) return undefined
  return { ...found, packages }
}

/** The handler's own file. Undefined: the handler is one of TorchServe's, or a package. */
function handlerFile({ manifest, modelDir }: PreparedModel): string | undefined {
  const [path = ''] = (manifest.model.handler ?? '').split(':')
  if (path === '') return undefined
  const named = path.endsWith('.py') ? path : `${path}.py`
  const places = isAbsolute(named) ? [named] : [join(modelDir, named), join(modelDir, basename(named))]
  return places.find((place) => existsSync(place))
}

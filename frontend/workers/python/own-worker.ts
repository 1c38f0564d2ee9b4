import { existsSync, readFileSync } from 'node:fs'
import { basename, isAbsolute, join } from 'node:path'
import { packageRoot } from '../../../model-archiver/package-root.ts'
import type { PreparedModel } from '../../../model-archiver/prepare.ts'
import type { Settings } from '../../config/settings.ts'
import { askModel } from './environment/environment.ts'
import type { Probe } from './environment/probe.ts'

/** The folder of the package `torchserve_ts`, which Python handlers import. */
export const OWN_PACKAGES = join(packageRoot(), 'python')
/** The worker for Python handlers that this package carries. It needs no other package. */
export const OWN_WORKER = join(OWN_PACKAGES, 'torchserve_ts', '__main__.py')

const IMPORTS = /^[ \t]*(?:from|import)[ \t]+torchserve_ts\b/m

/** An interpreter that runs a model in our own worker. */
export interface OwnPython extends Pick<Probe, 'python' | 'version' | 'torch'> {
  /** Folder of packages that were installed for this model only. */
  readonly packages: string | undefined
}

/** What is known of a model. Its handler is read, and its interpreter asked, once. */
interface Known {
  /** Whether its handler imports `torchserve_ts`; undefined: only TorchServe's worker can run the model. */
  readonly imports: boolean | undefined
  own?: OwnPython
}

const models = new WeakMap<PreparedModel, Known>()

/**
 * The interpreter of a model that runs in our own worker: its handler imports `torchserve_ts`, or TorchServe
 * is not installed. Undefined: it runs in TorchServe's worker, as every model with continuous batching or a
 * service envelope.
 * @throws ServeError WORKER_START_FAILED when there is no interpreter
 */
export async function findOwnPython(
  settings: Pick<Settings, 'python' | 'modelServerHome' | 'serviceEnvelope'>,
  prepared: PreparedModel,
): Promise<OwnPython | undefined> {
  let known = models.get(prepared)
  if (known === undefined) models.set(prepared, (known = { imports: importsOwn(settings, prepared) }))
  if (known.imports === undefined || known.own !== undefined) return known.own
  const { found, packages } = await askModel(settings, prepared)
  if (found.torchserve !== null && !known.imports) return undefined
  known.own = { ...found, packages }
  return known.own
}

function importsOwn(
  { serviceEnvelope }: Pick<Settings, 'serviceEnvelope'>,
  prepared: PreparedModel,
): boolean | undefined {
  const file = handlerFile(prepared)
  const hasEnvelope = (serviceEnvelope ?? prepared.manifest.model.envelope ?? '') !== ''
  if (file === undefined || hasEnvelope || prepared.modelConfig['continuousBatching'] === true)
    return undefined
  return IMPORTS.test(readFileSync(file, 'utf8'))
}

/** The handler's own file. Undefined: the handler is one of TorchServe's, or a package. */
function handlerFile({ manifest, modelDir }: PreparedModel): string | undefined {
  const [path = ''] = (manifest.model.handler ?? '').split(':')
  if (path === '') return undefined
  const named = path.endsWith('.py') ? path : `${path}.py`
  const places = isAbsolute(named) ? [named] : [join(modelDir, named), join(modelDir, basename(named))]
  return places.find((place) => existsSync(place))
}

import { ServeError } from '../../common/errors.ts'
import { searchedStore } from '../../model-archiver/locate.ts'
import { listStore } from '../../model-archiver/store.ts'
import { shownValue } from '../config/properties.ts'
import type { StartSettings } from '../config/load-settings.ts'
import type { Settings } from '../config/settings.ts'
import { settingsOf } from '../models/build-model.ts'
import { locateAndPrepare } from '../models/located-model.ts'
import type { RegisterRequest } from '../models/operations.ts'
import { loadRequest, restorable, restoreRequest } from '../models/snapshot-models.ts'
import { findGpus } from '../workers/gpus.ts'
import { checkFolder } from './check-archive.ts'
import { describeFailure } from './describe-failure.ts'
import type { Output } from './output.ts'

/**
 * Unpacks and reads, in a temporary folder, each model that a start with these settings would load. Skips
 * URLs.
 * @returns the problems, one line each
 */
export async function checkModels(
  { settings, modelSource }: StartSettings,
  output: Output,
): Promise<string[]> {
  const { tempDir, dispose } = await checkFolder()
  const gpus = await findGpus(settings.numberOfGpu)
  if (gpus.warning !== undefined) output.err(`Warning: ${gpus.warning}`)
  const gpuCount = gpus.list.length
  const check = { settings: { ...settings, tempDir }, gpuCount, output }
  const problems: string[] = []
  try {
    for (const request of await startupRequests(settings, modelSource.hint)) {
      await checkModel(request, check).catch((error: unknown) => {
        const where = searchedStore(ServeError.from(error), request.url, settings.modelStore)
        problems.push(
          `${shownValue('url', request.url)}: ${describeFailure(error)}${where}${modelSource.hint}`,
        )
      })
    }
  } finally {
    await dispose()
  }
  return problems
}

/**
 * The models that a start would load.
 * @param hint ends messages about a snapshot
 * @throws ServeError when the store cannot be read or an archive of the snapshot is missing
 */
export async function startupRequests(settings: Settings, hint: string): Promise<RegisterRequest[]> {
  const { modelSnapshot, modelStore, loadModels } = settings
  if (modelSnapshot !== undefined) {
    const restored = await restorable(modelSnapshot, modelStore, hint)
    return [...restored.map(restoreRequest), ...(modelSnapshot.unloaded ?? []).map(loadRequest)]
  }
  if (loadModels === 'all' && modelStore === undefined) return []
  const models = loadModels === 'all' ? (await listStore(modelStore!)).models : loadModels
  return models.map(loadRequest)
}

interface Check {
  settings: Settings
  gpuCount: number
  output: Output
}

async function checkModel(request: RegisterRequest, { settings, gpuCount, output }: Check): Promise<void> {
  if (/^https?:/i.test(request.url)) {
    output.out(`${shownValue('url', request.url)}: not checked, because a start downloads it`)
    return
  }
  const { signal } = new AbortController()
  const located = await locateAndPrepare(request, { settings, trusted: true, signal })
  const warn = (warning: string): void => output.err(`Warning: ${warning}`)
  try {
    const own = settingsOf(request, located, true, { settings, warn, gpuCount })
    const { version, runtime } = located.prepared
    const { minWorkers, maxWorkers, batchSize, maxBatchDelay, deviceType } = own
    output.out(
      `Model ${located.name} ${version}: runtime ${runtime}, workers ${minWorkers} to ${maxWorkers}, ` +
        `batchSize ${batchSize}, maxBatchDelay ${maxBatchDelay}, deviceType ${deviceType}`,
    )
  } finally {
    await located.prepared.dispose()
  }
}

import { redactUrl } from '../../common/redact.ts'
import { ServeError } from '../../common/errors.ts'
import { searchedStore } from '../../model-archiver/locate.ts'
import { listStore } from '../../model-archiver/store.ts'
import type { ModelToLoad, Settings } from '../config/settings.ts'
import type { Logger } from '../observe/logs/logger.ts'
import type { ModelManager } from './manager.ts'

/** How the models of a start are loaded; see StartOptions. */
interface LoadOptions {
  readonly startupModels?: 'fail' | 'skip'
  readonly waitForModels?: boolean
  readonly snapshotHint?: string
  readonly signal?: AbortSignal
}

/** What the configuration says to load at the start: a snapshot, a list of models, or the whole store. */
export class ModelsToLoad {
  /** What was left out of the store, and why. */
  readonly warnings: string[] = []
  readonly #settings: Settings
  readonly #models: ModelManager
  readonly #log: Logger

  constructor(settings: Settings, models: ModelManager, log: Logger) {
    this.#settings = settings
    this.#models = models
    this.#log = log
  }

  /**
   * Loads them, a few at a time; does not wait for the workers of the last. @throws ServeError of the first
   * that cannot be loaded, where one fails the start
   */
  async load({ startupModels, signal, snapshotHint, waitForModels }: LoadOptions): Promise<void> {
    const { loadModels, modelSnapshot } = this.#settings
    if (modelSnapshot !== undefined) {
      await this.#models.restore(modelSnapshot, snapshotHint)
      return
    }
    const otherwise = loadModels === 'all' && waitForModels !== true ? 'skip' : 'fail'
    const strict = (startupModels ?? otherwise) === 'fail'
    const wanted = await this.#wanted()
    signal?.throwIfAborted()
    await Promise.all(wanted.map((model) => this.#load(model, strict)))
  }

  async #wanted(): Promise<readonly ModelToLoad[]> {
    const { loadModels, modelStore } = this.#settings
    if (loadModels !== 'all') return loadModels
    if (modelStore === undefined) return []
    const { models, skipped } = await listStore(modelStore)
    this.warnings.push(...skipped.map(({ reason }) => reason))
    if (models.length === 0)
      this.warnings.push(
        `No models in ${modelStore}: it must contain archives (.mar, .tar.gz), or folders with a handler, a manifest or a .gguf file`,
      )
    return models
  }

  async #load(model: ModelToLoad, strict: boolean): Promise<void> {
    try {
      await this.#models.loadAtStartup(model)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      if (error.code === 'SHUTTING_DOWN') throw error
      const where = searchedStore(error, model.location, this.#settings.modelStore)
      const message = `Failed to load model: ${redactUrl(model.location)}: ${error.message}${where}`
      if (strict) throw new ServeError(error.code, message, { cause: error, detail: error.detail })
      this.#log.error({ detail: error.detail }, message)
    }
  }
}

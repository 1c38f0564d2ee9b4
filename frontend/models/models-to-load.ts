import { listStore } from '../../model-archiver/store.ts'
import type { ModelToLoad, Settings } from '../config/settings.ts'
import type { ModelManager } from './manager.ts'

/** How the models of a start are loaded; see StartOptions. */
interface LoadOptions {
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

  constructor(settings: Settings, models: ModelManager) {
    this.#settings = settings
    this.#models = models
  }

  /**
   * Loads them, a few at a time; does not wait for the workers of the last. @throws ServeError of the first
   * whose failure ends the start
   */
  async load({ signal, snapshotHint, waitForModels }: LoadOptions): Promise<void> {
    const { loadModels, modelSnapshot } = this.#settings
    if (modelSnapshot !== undefined) {
      await this.#models.restore(modelSnapshot, snapshotHint)
      return
    }
    const ends = waitForModels === true ? 'always' : loadModels === 'all' ? 'never' : 'mistakes'
    const wanted = await this.#wanted()
    signal?.throwIfAborted()
    await Promise.all(wanted.map((model) => this.#models.loadAtStartup(model, ends)))
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
}

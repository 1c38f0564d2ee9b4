import type { RunningServer } from '../../server-api.ts'
import type { Model } from '../../models/model.ts'
import type { ReplaceableModels } from '../../models/repository.ts'
import type { Output } from '../output.ts'
import { aborted } from '../stop-signals.ts'
import { modelCurlLines } from '../model-curl-lines.ts'
import { WATCH_LIMITS } from './file-stamps.ts'
import { FolderWatch } from './folder-watch.ts'
import { isModelFolder, possibleModelFolders } from './model-folders.ts'
import { SlowRequests } from './slow-requests.ts'
import { ServedFolder, type FolderHost } from './served-folder.ts'

/** Keeps the models of a server like the folders that are watched. */
export class Session implements FolderHost {
  readonly output: Output
  readonly #server: RunningServer
  readonly #folder: string
  readonly #served = new Map<string, ServedFolder>()
  readonly #watch = new FolderWatch(() => this.sourcesChanged())
  /** By the folder of the model; undefined: the folder of models, and its folders that may become some. */
  readonly #watched = new Map<string | undefined, readonly string[]>()
  #looking: Promise<void> | undefined
  #again = false

  constructor(folder: string, server: RunningServer, output: Output) {
    this.#folder = folder
    this.#server = server
    this.output = output
  }

  get models(): ReplaceableModels {
    return this.#server.models
  }

  /** Serves until the signal is aborted. @throws errors of the first look at the folders */
  async run(signal: AbortSignal): Promise<void> {
    const slow = new SlowRequests(this.#server, this.output)
    try {
      this.#looking = this.#look()
      await this.#looking
      this.#looking = undefined
      if (this.#again) this.sourcesChanged()
      await Promise.race([Promise.all([...this.#served.values()].map(({ idle }) => idle)), aborted(signal)])
      if (signal.aborted) return
      for (const { name, address } of this.#server.listening) this.output.out(`${name} listens on ${address}`)
      const { consoleUrl } = this.#server
      if (consoleUrl !== undefined) this.output.out(`The console is at ${consoleUrl}`)
      this.output.out(`Watching ${this.#folder}; each save is loaded, Ctrl-C ends`)
      await aborted(signal)
    } finally {
      slow.close()
      this.#watch.close()
      for (const served of this.#served.values()) served.callOff()
    }
  }

  sourcesChanged(): void {
    this.#again = true
    this.#looking ??= this.#lookAgain().finally(() => {
      this.#looking = undefined
    })
  }

  async firstLoaded(model: Model): Promise<void> {
    const address = this.#server.listening[0]?.address ?? ''
    this.output.out(`${model.name}: it serves. Try it:`)
    const lines = await modelCurlLines(model.name, model.methods, address)
    this.output.out(`  ${lines.at(-1)!.line}`)
  }

  async #lookAgain(): Promise<void> {
    while (this.#again) {
      this.#again = false
      await this.#look().catch((error: unknown) => {
        this.output.err(`The folder cannot be watched: ${(error as Error).message}`)
      })
    }
  }

  async #look(): Promise<void> {
    const possible = await possibleModelFolders(this.#folder)
    this.#watched.set(undefined, [this.#folder, ...possible.slice(0, WATCH_LIMITS.folders)])
    this.#updateWatch()
    // Those that become models from now on are heard of.
    const folders = possible.filter(isModelFolder)
    for (const [folder, served] of this.#served) {
      if (folders.includes(folder)) continue
      this.#served.delete(folder)
      this.#watched.delete(folder)
      void served.remove().catch((error: unknown) => this.output.err((error as Error).message))
    }
    for (const folder of folders) {
      const served = this.#served.get(folder) ?? new ServedFolder(folder, this)
      this.#served.set(folder, served)
      await served.look((watched) => {
        this.#watched.set(folder, watched)
        return this.#updateWatch()
      })
    }
    this.#updateWatch()
  }

  /** @returns whether something may have happened where nobody watched */
  #updateWatch(): boolean {
    return this.#watch.update(new Set([...this.#watched.values()].flat()))
  }
}

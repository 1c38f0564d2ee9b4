import { setTimeout as sleep } from 'node:timers/promises'
import type { RunningServer } from '../../server-api.ts'
import type { Model } from '../../models/model.ts'
import type { ReplaceableModels } from '../../models/repository.ts'
import type { Output } from '../output.ts'
import { aborted } from '../stop-signals.ts'
import { modelCurlLines } from '../local-serving.ts'
import { findModelFolders } from './file-stamps.ts'
import { ServedFolder, type FolderHost } from './served-folder.ts'

/** Milliseconds between two looks at the files. */
const LOOK_MS = 100
/** The pause after a look is at least so many times as long as the look. */
const PAUSE_FACTOR = 10

/** Keeps the models of a server like the folders that are watched. */
export class Session implements FolderHost {
  readonly output: Output
  readonly #server: RunningServer
  readonly #folder: string
  readonly #served = new Map<string, ServedFolder>()

  constructor(folder: string, server: RunningServer, output: Output) {
    this.#folder = folder
    this.#server = server
    this.output = output
  }

  get models(): ReplaceableModels {
    return this.#server.models
  }

  /** Serves until the signal is aborted. */
  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#look()
      const looking = this.#lookUntil(signal)
      await Promise.race([Promise.all([...this.#served.values()].map(({ idle }) => idle)), aborted(signal)])
      if (!signal.aborted) this.#announce()
      await looking
    } finally {
      for (const served of this.#served.values()) served.callOff()
    }
  }

  #announce(): void {
    for (const { name, address } of this.#server.listening) this.output.out(`${name} listens on ${address}`)
    const { consoleUrl } = this.#server
    if (consoleUrl !== undefined) this.output.out(`The console is at ${consoleUrl}`)
    this.output.out(`Watching ${this.#folder}; each save is loaded, Ctrl-C ends`)
  }

  async firstLoaded(model: Model): Promise<void> {
    const address = this.#server.listening[0]?.address ?? ''
    this.output.out(`${model.name}: it serves. Try it:`)
    const lines = await modelCurlLines(model.name, model.methods, address)
    this.output.out(`  ${lines.at(-1)!.line}`)
  }

  /** Compares the files again and again: folders that a container mounts may have no events. */
  async #lookUntil(signal: AbortSignal): Promise<void> {
    for (let pause = LOOK_MS; !signal.aborted;) {
      await sleep(pause, undefined, { ref: false, signal }).catch(() => undefined)
      const began = performance.now()
      if (!signal.aborted) await this.#look()
      pause = Math.max(LOOK_MS, (performance.now() - began) * PAUSE_FACTOR)
    }
  }

  async #look(): Promise<void> {
    const folders = await findModelFolders(this.#folder)
    for (const [folder, served] of this.#served) {
      if (folders.includes(folder) || !served.isMissingAgain()) continue
      this.#served.delete(folder)
      void served.remove().catch((error: unknown) => this.output.err((error as Error).message))
    }
    for (const folder of folders) {
      const served = this.#served.get(folder) ?? new ServedFolder(folder, this)
      this.#served.set(folder, served)
      await served.look()
    }
  }
}

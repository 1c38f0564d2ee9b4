import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createArchive } from '../../model-archiver/pack.ts'
import { STAND_INS } from './places.ts'
import type { Recordings } from './recordings.ts'

/** Models that are more than a network with recorded answers. */
const HANDLERS: Readonly<Record<string, string>> = { echo_stream: 'echo-stream.ts' }

/** Makes the archives that TorchServe's tests name, each once. */
export class StandIns {
  readonly #recordings: Recordings
  readonly #folder: string
  readonly #made = new Map<string, Promise<string>>()

  constructor(recordings: Recordings, folder: string) {
    this.#recordings = recordings
    this.#folder = folder
  }

  /** What belongs into the model store. */
  get inStore(): readonly string[] {
    return this.#recordings.inStore
  }

  has(name: string): boolean {
    return this.#recordings.answers.has(name)
  }

  /** @returns the path of NAME.mar */
  archive(name: string): Promise<string> {
    const made = this.#made.get(name) ?? this.#make(name)
    this.#made.set(name, made)
    return made
  }

  async #make(modelName: string): Promise<string> {
    const own = join(this.#folder, modelName)
    await mkdir(own, { recursive: true })
    const answers = join(own, 'answers.json')
    await writeFile(answers, JSON.stringify(this.#recordings.answers.get(modelName) ?? {}))
    return createArchive({
      modelName,
      version: '1.0',
      handler: join(STAND_INS, HANDLERS[modelName] ?? 'recorded.ts'),
      extraFiles: [answers],
      exportPath: this.#folder,
      force: true,
    })
  }
}

import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Packing } from './packing.ts'
import { readRecordings, type Recordings } from './recordings.ts'
import { packWar } from './wars.ts'

/** Makes the archives that TorchServe's tests name, each once. */
export class StandIns {
  readonly #recordings: Recordings
  readonly #checkout: string
  readonly #folder: string
  readonly #packing: Packing
  readonly #made = new Map<string, Promise<string>>()

  private constructor(recordings: Recordings, checkout: string, folder: string, packing: Packing) {
    this.#recordings = recordings
    this.#checkout = checkout
    this.#folder = folder
    this.#packing = packing
  }

  /**
   * @param folder gets NAME/answers.json of each network at once, including `unknown`, which knows none;
   * archives on demand
   */
  static async create(checkout: string, folder: string, packing: Packing): Promise<StandIns> {
    const recordings = await readRecordings(checkout)
    const standIns = new StandIns(recordings, checkout, folder, packing)
    for (const [name, answers] of [...recordings.answers, ['unknown', {}] as const]) {
      await mkdir(join(folder, name), { recursive: true })
      await writeFile(standIns.#answers(name), JSON.stringify(answers))
    }
    return standIns
  }

  /** What belongs into the model store. */
  get inStore(): readonly string[] {
    return this.#recordings.inStore
  }

  /** What each network answers. */
  get answers(): Recordings['answers'] {
    return this.#recordings.answers
  }

  has(name: string): boolean {
    return this.#recordings.answers.has(name)
  }

  /** @returns the path of NAME.mar */
  archive(name: string): Promise<string> {
    return this.#once(`${name}.mar`, () => this.#packing.archive(name, this.#answers(name), this.#folder))
  }

  /** @returns the path of NAME.war */
  war(name: string): Promise<string> {
    return this.#once(`${name}.war`, () => packWar(name, this.#checkout, this.#folder, this.#packing))
  }

  #once(file: string, make: () => Promise<string>): Promise<string> {
    const made = this.#made.get(file) ?? make()
    this.#made.set(file, made)
    return made
  }

  #answers(name: string): string {
    return join(this.#folder, name, 'answers.json')
  }
}

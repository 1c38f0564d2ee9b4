import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { UnpackBudget } from './unpack-budget.ts'

/** Writes admitted entries under one folder. Never follows or overwrites what is there: every file is created anew. */
export class EntryWriter {
  readonly #root: string
  readonly #budget: UnpackBudget
  readonly #made = new Set<string>()

  constructor(root: string, budget: UnpackBudget) {
    this.#root = root
    this.#budget = budget
  }

  /** Makes a folder and those above it one by one: `recursive` would make the root again that somebody is removing. */
  async folder(name: string): Promise<void> {
    const parts = name.replace(/\/$/, '').split('/')
    for (let depth = 1; depth <= parts.length; depth++) {
      const path = parts.slice(0, depth).join('/')
      if (this.#made.has(path)) continue
      await mkdir(join(this.#root, path))
      this.#made.add(path)
    }
  }

  /**
   * @param mode as in the archive; of it only "may be executed" is kept
   * @param bytes as the archive declares them; `content` holds no more
   */
  async file(name: string, mode: number, bytes: number, content: AsyncIterable<Uint8Array>): Promise<void> {
    const slash = name.lastIndexOf('/')
    if (slash > 0) await this.folder(name.slice(0, slash))
    await this.#budget.reserve(bytes)
    await writeFile(join(this.#root, name), content, {
      flag: 'wx',
      mode: (mode & 0o111) === 0 ? 0o644 : 0o755,
    })
  }
}

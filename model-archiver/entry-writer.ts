import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { UnpackBudget } from './unpack-budget.ts'

/**
 * Writes admitted entries below one folder. Creates every file anew: never follows or overwrites existing
 * ones.
 */
export class EntryWriter {
  readonly #root: string
  readonly #budget: UnpackBudget
  readonly #made = new Set<string>()

  constructor(root: string, budget: UnpackBudget) {
    this.#root = root
    this.#budget = budget
  }

  /** Makes missing folders one by one: `recursive` would recreate a root that is being removed. */
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
   * Writes a file.
   * @param mode as in the archive; only its executable bits are kept
   * @param bytes as the archive declares them; `content` has no more
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

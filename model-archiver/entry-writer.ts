import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Writes admitted entries under one folder. Never follows or overwrites what is there: every file is created anew. */
export class EntryWriter {
  readonly #root: string
  readonly #made = new Set<string>()

  constructor(root: string) {
    this.#root = root
  }

  async folder(name: string): Promise<void> {
    const path = join(this.#root, name)
    if (this.#made.has(path)) return
    await mkdir(path, { recursive: true })
    this.#made.add(path)
  }

  /** @param mode as in the archive; of it only "may be executed" is kept */
  async file(name: string, mode: number, content: AsyncIterable<Uint8Array>): Promise<void> {
    await this.folder(dirname(name))
    // Iterated, not piped: what tar hands out is no stream of Node's, and a pipe may miss its end.
    await writeFile(join(this.#root, name), content, {
      flag: 'wx',
      mode: (mode & 0o111) === 0 ? 0o644 : 0o755,
    })
  }
}

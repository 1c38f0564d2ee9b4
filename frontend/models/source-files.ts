import { createHash } from 'node:crypto'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { fileStamp } from '../../common/files.ts'

/** Deeper folders are not a model's; a link may lead back up. */
const MAX_DEPTH = 32
/** Python writes it beside the code that it reads. */
const WRITTEN_BY_READING = '__pycache__'

/**
 * The files that a model was loaded from, to tell later whether they are the same: names, inodes, sizes, and
 * the times of the last change to content and to inode. That costs one `stat` for each file, and no read.
 */
export class SourceFiles {
  readonly #maxFiles: number
  readonly #stamps = new Map<string, string | undefined>()

  /** @param maxFiles a folder with more entries counts as changed */
  constructor(maxFiles: number) {
    this.#maxFiles = maxFiles
  }

  /** Remembers a file or a folder as it is now. */
  async add(path: string): Promise<void> {
    this.#stamps.set(path, await this.#stamp(path))
  }

  /** Whether everything is still as it was. */
  async areUnchanged(): Promise<boolean> {
    for (const [path, stamp] of this.#stamps)
      if (stamp === undefined || (await this.#stamp(path)) !== stamp) return false
    return true
  }

  /** Undefined: it cannot be read, or has too many files. */
  async #stamp(path: string): Promise<string | undefined> {
    const lines: string[] = []
    const isWhole = await this.#collect(path, '', lines, 0).catch(() => false)
    return isWhole ? createHash('sha256').update(lines.join('\n')).digest('hex') : undefined
  }

  /** Follows links, because a mounted volume may change by turning one. */
  async #collect(path: string, name: string, lines: string[], depth: number): Promise<boolean> {
    if (depth > MAX_DEPTH || lines.length > this.#maxFiles) return false
    const stats = await stat(path, { bigint: true })
    if (!stats.isDirectory()) {
      lines.push(JSON.stringify([name, fileStamp(stats)]))
      return true
    }
    lines.push(JSON.stringify([name]))
    for (const entry of (await readdir(path)).sort()) {
      if (entry === WRITTEN_BY_READING) continue
      if (!(await this.#collect(join(path, entry), `${name}/${entry}`, lines, depth + 1))) return false
    }
    return true
  }
}

/** A version with what it was loaded from. */
interface Loaded {
  readonly name: string
  readonly version: string
  readonly prepared: PreparedModel
  readonly source: SourceFiles | undefined
}

/**
 * A warning if files have changed that new workers will not read: they run what was compiled or unpacked when
 * the version was loaded, as its other workers do. Those of a Python folder read the folder itself, as in
 * TorchServe.
 */
export async function staleFiles({ name, version, prepared, source }: Loaded): Promise<string[]> {
  const { runtime, modelDir, workDir } = prepared
  if (source === undefined || (runtime !== 'node' && !modelDir.startsWith(workDir))) return []
  if (await source.areUnchanged()) return []
  return [
    `The files of model ${name}, version ${version}, have changed since it was loaded, and its workers run the ` +
      'code from then. Register the model again or restart the server to load them; torchserve-ts dev loads each change.',
  ]
}

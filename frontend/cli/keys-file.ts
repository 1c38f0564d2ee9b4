import { lstat, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseDocument } from 'yaml'
import { ServeError } from '../../common/errors.ts'
import { putInPlace } from '../../common/files.ts'
import { parseApiKeys, type ApiKeysFile } from '../auth/api-keys-file.ts'

/** The keys file as the command changes it: JSON stays JSON, YAML keeps its comments outside of `keys`. */
export class KeysFile {
  readonly path: string
  /** To be changed before `write`. */
  readonly content: ApiKeysFile
  readonly #text: string
  readonly #mode: number

  private constructor(path: string, content: ApiKeysFile, text: string, mode: number) {
    this.path = path
    this.content = content
    this.#text = text
    this.#mode = mode
  }

  /**
   * @param create a missing file is an empty one
   * @throws ServeError CONFIG when it cannot be read or used
   */
  static async open(given: string, { create = false } = {}): Promise<KeysFile> {
    const path = await targetOf(resolve(given))
    try {
      const text = await readFile(path, 'utf8')
      return new KeysFile(path, parseApiKeys(path, text), text, (await stat(path)).mode & 0o777)
    } catch (cause) {
      if (cause instanceof ServeError) throw cause
      if (create && (cause as NodeJS.ErrnoException).code === 'ENOENT')
        return new KeysFile(path, parseApiKeys(path, '{}'), isYaml(path) ? '' : '{}', 0o600)
      throw new ServeError('CONFIG', `The keys file cannot be read: ${(cause as Error).message}`, { cause })
    }
  }

  /**
   * Puts a new file in the place of the old one; its name keeps two commands from writing at once.
   * @param last the last that can fail before that: what it throws leaves the file as it was
   */
  async write(last?: () => Promise<void>): Promise<void> {
    const text = this.#changed()
    parseApiKeys(this.path, text)
    const beside = `${this.path}.new`
    try {
      await writeFile(beside, text, { mode: this.#mode, flag: 'wx', flush: true })
    } catch (cause) {
      const isThere = (cause as NodeJS.ErrnoException).code === 'EEXIST'
      const why = isThere
        ? 'another command is changing the file; if none is, remove it'
        : (cause as Error).message
      throw new ServeError('CONFIG', `${beside} cannot be written: ${why}`, { cause })
    }
    try {
      await last?.()
      await putInPlace(beside, this.path)
    } catch (cause) {
      await rm(beside, { force: true })
      if (cause instanceof ServeError) throw cause
      throw new ServeError('CONFIG', `The keys file cannot be written: ${(cause as Error).message}`, {
        cause,
      })
    }
  }

  #changed(): string {
    const { keys } = this.content
    if (isJson(this.#text)) {
      return `${JSON.stringify({ ...(JSON.parse(this.#text) as object), keys }, null, 2)}\n`
    }
    const document = parseDocument(this.#text)
    document.set('keys', document.createNode(keys))
    return document.toString()
  }
}

/** What a link leads to: the new file goes there, not in the place of the link. @throws ServeError CONFIG */
async function targetOf(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (cause) {
    const isLink = (await lstat(path).catch(() => undefined))?.isSymbolicLink() === true
    if (!isLink) return path
    const why = (cause as Error).message
    throw new ServeError(
      'CONFIG',
      `The keys file ${path} is a symbolic link to a file that does not exist: ${why}`,
      { cause },
    )
  }
}

function isYaml(path: string): boolean {
  return /\.ya?ml$/i.test(path)
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Paths that match a pattern of the command line, sorted. `*`, `?` and `[a-z]` match within one path segment,
 * as in Python's glob, which torch-model-archiver uses. A path that exists matches only itself.
 */
export async function expandGlob(pattern: string): Promise<string[]> {
  if (!isGlob(pattern) || existsSync(pattern)) return existsSync(pattern) ? [pattern] : []
  const parts = pattern.split('/')
  let found = [parts[0] === '' ? '/' : '']
  for (const part of parts[0] === '' ? parts.slice(1) : parts)
    found = (await Promise.all(found.map((folder) => matches(folder, part)))).flat()
  return found.sort()
}

async function matches(folder: string, part: string): Promise<string[]> {
  if (!isGlob(part)) {
    const path = join(folder, part)
    return existsSync(path) ? [path] : []
  }
  const pattern = toRegExp(part)
  const names = await readdir(folder === '' ? '.' : folder).catch(() => [])
  return names
    .filter((name) => pattern.test(name) && (part.startsWith('.') || !name.startsWith('.')))
    .map((name) => join(folder, name))
}

/** Whether the text contains pattern characters. */
export function isGlob(text: string): boolean {
  return /[*?[]/.test(text)
}

function toRegExp(part: string): RegExp {
  const source = part.replace(/\*+|\?|\[(!?)([^\]]+)\]|[^*?[]+|\[/g, (piece, not: string, set: string) => {
    if (piece.startsWith('*')) return '.*'
    if (piece === '?') return '.'
    if (set !== undefined) return `[${not === '!' ? '^' : ''}${set.replace(/[\\^[]/g, '\\$&')}]`
    return piece.replace(/[\\^$.|+()[\]{}]/g, '\\$&')
  })
  return new RegExp(`^${source}$`, 's')
}

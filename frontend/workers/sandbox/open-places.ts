import { readdirSync } from 'node:fs'
import { join, relative, isAbsolute } from 'node:path'

/**
 * The paths without those among `secret` that are inside them: a folder with a secret becomes its other
 * entries. Landlock can only allow, and what it allows includes everything below. A path that is a secret
 * itself, or is inside one, was named on purpose and stays.
 */
export function openPlaces(paths: readonly string[], secret: readonly string[]): string[] {
  return [...new Set(paths.flatMap((path) => opened(path, secret)))]
}

function opened(path: string, secret: readonly string[]): string[] {
  const within = secret.filter((each) => isInside(each, path))
  if (within.length === 0) return [path]
  return entries(path)
    .map((name) => join(path, name))
    .filter((entry) => !within.includes(entry))
    .flatMap((entry) => opened(entry, within))
}

/** Whether a path is below a folder, and not the folder itself. */
export function isInside(path: string, folder: string): boolean {
  const way = relative(folder, path)
  return way !== '' && way !== '..' && !way.startsWith('../') && !isAbsolute(way)
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

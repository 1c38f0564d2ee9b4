import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder with those above it, level by level: Node's own recursive `mkdir` tries for ever where a
 * file system has no room for folders, such as /proc.
 * @param path absolute
 * @param mode of new folders. Default: what the umask leaves
 * @throws Error of the system
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const made = await mkdir(path, { mode }).catch((error: unknown) => error as NodeJS.ErrnoException)
  if (made === undefined) return
  if (made.code === 'ENOENT' && dirname(path) !== path) {
    await makeFolder(dirname(path), mode)
    await mkdir(path, { mode })
  } else if (!(await stat(path).catch(() => undefined))?.isDirectory()) throw made
}

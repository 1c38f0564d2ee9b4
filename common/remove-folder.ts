import { randomUUID } from 'node:crypto'
import { existsSync, rmSync } from 'node:fs'
import { opendir, rename, rmdir, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { startProgram } from './start-program.ts'

/** The removal that is last in the queue. */
let last: Promise<void> = Promise.resolve()

/**
 * Removes a folder and its content, after all other folders that are to be removed. The program `rm` does
 * it, so that no number of files blocks the event loop. Does not follow links. A missing folder is not an
 * error.
 * @throws Error that says in one line what is left and why
 */
export function removeFolder(folder: string): Promise<void> {
  const removed = last.then(() => remove(folder))
  last = removed.catch(() => undefined)
  return removed
}

async function remove(folder: string): Promise<void> {
  if (await removedByProgram(folder)) return
  try {
    await removeHere(folder)
  } catch (cause) {
    if (existsSync(folder)) throw new Error(leftBehind(folder, cause), { cause })
  }
}

/** Its name and not its path, because not every `rm` reaches a path that is longer than the system takes. */
async function removedByProgram(folder: string): Promise<boolean> {
  const options = { cwd: dirname(folder), env: process.env, stdio: 'ignore' } as const
  const { exitCode } = await startProgram('rm', ['-rf', '--', basename(folder)], options).ended
  return exitCode === 0
}

/**
 * For a system without `rm`, and to learn why it failed. Moves folders to the top before it empties them: the
 * paths of a deep tree are longer than the system takes.
 */
async function removeHere(top: string): Promise<void> {
  for (let isEmpty = false; !isEmpty;) {
    isEmpty = true
    for await (const entry of await opendir(top)) {
      isEmpty = false
      const path = join(top, entry.name)
      if (!entry.isDirectory()) {
        await unlink(path)
        continue
      }
      for await (const { name } of await opendir(path))
        await rename(join(path, name), join(top, randomUUID()))
      await rmdir(path)
    }
  }
  await rmdir(top)
}

/**
 * Removes a file or a folder with its content at once, for the end of a process. Never throws.
 * @param left is told what is left and why. Default: nobody, because the next start removes it
 */
export function removeSync(path: string, left?: (line: string) => void): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    left?.(leftBehind(path, error))
  }
}

function leftBehind(path: string, error: unknown): string {
  return `${path} is left behind: ${(error as Error).message}`
}

import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { isAlive } from '../processes.ts'

const POLL_MS = 200

/**
 * Creates a folder once for all test processes; the others wait meanwhile. Leftovers of a killed process are
 * replaced.
 * @param content what the folder depends on; it is created again when this differs
 */
export async function makeOnce(folder: string, content: string, make: () => Promise<void>): Promise<void> {
  const mark = join(folder, 'made')
  const lock = `${folder}.lock`
  mkdirSync(dirname(folder), { recursive: true })
  while (!isMade(mark, content)) {
    if (!take(lock)) {
      await wait(POLL_MS)
      continue
    }
    try {
      if (isMade(mark, content)) return
      rmSync(folder, { recursive: true, force: true })
      await make()
      writeFileSync(mark, content)
    } finally {
      rmSync(lock, { force: true })
    }
  }
}

function isMade(mark: string, content: string): boolean {
  return existsSync(mark) && readFileSync(mark, 'utf8') === content
}

function take(lock: string): boolean {
  try {
    writeFileSync(lock, String(process.pid), { flag: 'wx' })
    return true
  } catch {
    removeStale(lock)
    return false
  }
}

function removeStale(lock: string): void {
  try {
    const pid = Number(readFileSync(lock, 'utf8'))
    if (pid > 0 && !isAlive(pid)) rmSync(lock, { force: true })
  } catch {
    // It is gone already.
  }
}

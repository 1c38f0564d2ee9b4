import {
  createReadStream,
  createWriteStream,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { rename, rm, stat, utimes } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'

/** Number of rolled files to keep per log. */
export const KEPT_FILES = 30

const ENDING = /\.log$/

/**
 * Renames a log file after its day: `access_log.21-Nov.log`, with a number for further files of that day.
 * @returns its new path
 */
export function setAside(path: string, time: number): string {
  const stem = path.replace(ENDING, '')
  for (let number = 1; ; number += 1) {
    const aside = `${stem}.${dayName(time)}${number === 1 ? '' : `.${number}`}.log`
    if (existsSync(aside) || existsSync(`${aside}.gz`)) continue
    renameSync(path, aside)
    return aside
  }
}

/** Compresses a rolled file to `<its name>.gz`, unless it was removed. */
export async function compress(aside: string): Promise<void> {
  const unfinished = `${aside}.gz.tmp`
  try {
    await pipeline(createReadStream(aside), createGzip(), createWriteStream(unfinished, { mode: 0o640 }))
    // It stays as old as its lines, so that the oldest lines are removed first.
    const { mtime } = await stat(aside)
    await utimes(unfinished, mtime, mtime)
    await rename(unfinished, `${aside}.gz`)
    await rm(aside)
  } catch (error) {
    if (existsSync(aside)) throw error
  } finally {
    // Half a file on a disk that is full.
    await rm(unfinished, { force: true })
  }
}

/** Rolled files that were not compressed because the server ended first. */
export function leftAside(path: string): string[] {
  return aside(path).filter((each) => ENDING.test(each))
}

/** Removes the oldest rolled files of a log beyond 30, or beyond so many bytes together. */
export function prune(path: string, keepBytes: number): void {
  const files = aside(path).map((each) => ({ each, facts: statSync(each) }))
  files.sort((a, b) => b.facts.mtimeMs - a.facts.mtimeMs)
  let bytes = 0
  files.forEach(({ each, facts }, index) => {
    bytes += facts.size
    if (index >= KEPT_FILES || bytes > keepBytes) rmSync(each, { force: true })
  })
}

function aside(path: string): string[] {
  const stem = basename(path).replace(ENDING, '')
  const pattern = new RegExp(`^${stem}\\.\\d\\d-[A-Z][a-z]{2}(\\.\\d+)?\\.log(\\.gz(\\.tmp)?)?$`)
  const folder = dirname(path)
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name))
}

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

/** The local day in TorchServe's names of rolled files: `21-Nov`. */
export function dayName(time: number): string {
  const date = new Date(time)
  return `${String(date.getDate()).padStart(2, '0')}-${MONTHS[date.getMonth()]!}`
}

/** End of the local day of `time`, in milliseconds since the epoch. */
export function endOfDay(time: number): number {
  return new Date(time).setHours(24, 0, 0, 0)
}

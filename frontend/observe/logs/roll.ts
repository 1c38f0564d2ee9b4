import { createReadStream, createWriteStream, existsSync, readdirSync, renameSync, statSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { dayName } from './clock.ts'

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

/** Compresses a rolled file to `<its name>.gz`. */
export async function compress(aside: string): Promise<void> {
  const unfinished = `${aside}.gz.tmp`
  await pipeline(createReadStream(aside), createGzip(), createWriteStream(unfinished, { mode: 0o640 }))
  await rename(unfinished, `${aside}.gz`)
  await rm(aside)
}

/** Rolled files that were not compressed because the server ended first. */
export function leftAside(path: string): string[] {
  return aside(path).filter((each) => ENDING.test(each))
}

/** Removes the oldest rolled files of a log beyond `kept`. */
export async function prune(path: string, kept = KEPT_FILES): Promise<void> {
  const files = aside(path).map((each) => ({ each, time: statSync(each).mtimeMs }))
  files.sort((a, b) => b.time - a.time)
  await Promise.all(files.slice(kept).map(({ each }) => rm(each, { force: true })))
}

function aside(path: string): string[] {
  const stem = basename(path).replace(ENDING, '')
  const pattern = new RegExp(`^${stem}\\.\\d\\d-[A-Z][a-z]{2}(\\.\\d+)?\\.log(\\.gz(\\.tmp)?)?$`)
  const folder = dirname(path)
  return readdirSync(folder)
    .filter((name) => pattern.test(name))
    .map((name) => join(folder, name))
}

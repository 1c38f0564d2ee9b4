import { readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { removeFolder, removeSync } from '../common/files.ts'

/**
 * Names the process that owns a temporary folder, so that other servers can remove it once that process is
 * dead.
 */
const FILE = 'owner'

interface Owner {
  /** The pid namespace and the boot that `pid` belongs to. */
  readonly place: string
  readonly pid: number
  /** Start time of the process in ticks, because pids are reused. Empty if unknown. */
  readonly started: string
}

/**
 * Records this process as the owner of a new folder. If that fails, the folder is removed, because nobody
 * else could tell that it may be.
 */
export function claimFolder(folder: string): void {
  const { place, pid, started } = (self ??= describeSelf())
  try {
    writeFileSync(join(folder, FILE), `${place}\n${pid}\n${started}\n`, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    removeSync(folder)
    throw error
  }
}

/**
 * Removes folders in `parent` with a matching name and a dead owner. Keeps folders without an owner file, of
 * other users, or of processes invisible from here. Never rejects.
 * @param left is told what could not be removed and why
 * @returns the names of the removed folders
 */
export async function sweepFolders(
  parent: string,
  pattern: RegExp,
  left?: (line: string) => void,
): Promise<string[]> {
  const swept: string[] = []
  for (const name of await readdir(parent).catch(() => [])) {
    if (!pattern.test(name)) continue
    const folder = join(parent, name)
    if (!(await isOurs(folder)) || !(await hasEnded(folder))) continue
    await removeFolder(folder).then(
      () => swept.push(name),
      (error: unknown) => left?.((error as Error).message),
    )
  }
  return swept
}

/** In a folder that others can write to, they could swap a subfolder for a link during removal. */
async function isOurs(folder: string): Promise<boolean> {
  const stats = await lstat(folder).catch(() => undefined)
  if (stats === undefined || !stats.isDirectory()) return false
  return process.getuid === undefined || (stats.uid === process.getuid() && (stats.mode & 0o022) === 0)
}

async function hasEnded(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, FILE), 'utf8').catch(() => '')
  const [place, pid, started] = text.split('\n')
  self ??= describeSelf()
  if (place !== self.place || !/^[1-9]\d{0,9}$/.test(pid ?? '')) return false
  return !runs({ place, pid: Number(pid), started: started ?? '' })
}

function runs({ pid, started }: Owner): boolean {
  if (started !== '') return startTime(pid) === started
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

let self: Owner | undefined

function describeSelf(): Owner {
  return { place: processSpace(), pid: process.pid, started: startTime(process.pid) ?? '' }
}

function processSpace(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return hostname()
  }
}

/** Field 22 of /proc/<pid>/stat; undefined for a dead process (zombies included), and without /proc. */
function startTime(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The program's name, in parentheses, may contain anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

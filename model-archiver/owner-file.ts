import { readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { lstat, readdir, readFile, rm } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'

/** Says which process a temporary folder belongs to, so that what a killed server left can be told from what another uses. */
const FILE = 'owner'

interface Owner {
  /** The set of process numbers that `pid` is one of: a container has its own, and so has every start of a machine. */
  readonly place: string
  readonly pid: number
  /** When the process started, in ticks: numbers are given out again. Empty where that cannot be told. */
  readonly started: string
}

/** Writes who owns a folder: this process. */
export function claimFolder(folder: string): void {
  const { place, pid, started } = (self ??= describeSelf())
  writeFileSync(join(folder, FILE), `${place}\n${pid}\n${started}\n`, { flag: 'wx', mode: 0o600 })
}

/**
 * Removes the folders in `parent` whose name fits and whose owner has ended. A folder without an owner's name, of another user, or
 * of a process that cannot be seen from here stays. Never rejects.
 * @returns the names of what was removed
 */
export async function sweepFolders(parent: string, pattern: RegExp): Promise<string[]> {
  const swept: string[] = []
  for (const name of await readdir(parent).catch(() => [])) {
    if (!pattern.test(name)) continue
    const folder = join(parent, name)
    if (!(await isOurs(folder)) || !(await hasEnded(folder))) continue
    const removed = rm(folder, { recursive: true, force: true }).then(() => true)
    if (await removed.catch(() => false)) swept.push(name)
  }
  return swept
}

/** A folder that others may write to could be swapped for a link while it is removed. */
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

/** Field 22 of /proc/<pid>/stat; undefined for a process that has ended (zombies have), and where there is no /proc. */
function startTime(pid: number): string | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name of the program, in brackets, may hold anything.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}

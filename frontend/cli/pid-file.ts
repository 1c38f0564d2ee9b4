import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeFileSync,
  existsSync,
  readFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isObject, parseJson } from '../../common/json.ts'
import { makeFolderSync } from '../../common/files.ts'
import { execFileSync } from 'node:child_process'

/**
 * Content of a pid file: the pid on line 1, as in TorchServe; on line 2 the milliseconds that stopping may
 * take; on line 3 what is known of the server, as JSON.
 */
export interface PidRecord {
  readonly pid: number
  readonly stopMs: number
  /** Its working folder. Empty: not known. */
  readonly folder: string
  /** Absolute path of the configuration file that its user named. */
  readonly config?: string
  /** Path of the Unix socket that tells its status. */
  readonly socket?: string
  /** Whether it is a `torchserve-ts serve`, which claims no folder: a stop from elsewhere never means it. */
  readonly inTerminal?: boolean
  /** Whether it has been told to stop. */
  readonly stopping?: boolean
}

const DEFAULT_STOP_MS = 60_000

/** Path of TorchServe's pid file: that of the first server of a temporary folder. */
export function pidFilePath(tempDir: string): string {
  return join(tempDir, '.model_server.pid')
}

/** The temporary folder, before the settings are read. Must agree with the key TEMP (keys.ts). */
export function tempDirOf(env: NodeJS.ProcessEnv): string {
  const temp = env['TEMP']?.trim()
  return temp === undefined || temp === '' ? tmpdir() : resolve(temp)
}

/**
 * The running server. Removes a stale file. Our own pid in the file does not count: in a container every
 * start may get the same pid.
 */
export function findRunning(path: string): PidRecord | undefined {
  const record = readRecord(path)
  if (record !== undefined && record.pid !== process.pid && isServerProcess(record.pid)) return record
  try {
    rmSync(path, { force: true })
  } catch {
    // A folder, or another user's: it is no server, and must not hide those that are.
  }
  return undefined
}

/**
 * Writes the record of this process, atomically, unless another server was faster.
 * @returns whether it was written; false: another server is running
 */
export function claimPidFile(path: string, record: PidRecord): boolean {
  makeFolderSync(dirname(path))
  const beside = writeBeside(path, record)
  try {
    if (findRunning(path) !== undefined) return false
    linkSync(beside, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    if (readRecord(path) !== undefined) return false
    throw new ServeError(
      'CONFIG',
      `${path} must be a file of this user. Remove it, or set TEMP to a folder of your own.`,
    )
  } finally {
    rmSync(beside, { force: true })
  }
}

/** Replaces the record of this process, atomically. Does nothing when the file is not its own any more. */
export function rewritePidFile(path: string, record: PidRecord): void {
  if (readRecord(path)?.pid !== record.pid) return
  const beside = writeBeside(path, record)
  try {
    renameSync(beside, path)
  } catch (error) {
    rmSync(beside, { force: true })
    throw error
  }
}

/**
 * Removes the file if it still belongs to this process. Never throws.
 * @param left is told why it could not be removed
 */
export function removePidFile(path: string, pid: number, left?: (line: string) => void): void {
  try {
    if (readRecord(path)?.pid === pid) rmSync(path, { force: true })
  } catch (error) {
    left?.(`${path} is left behind: ${(error as Error).message}`)
  }
}

/** The folder may be everybody's (/tmp): a name that nobody can foresee, and never through a link. */
function writeBeside(path: string, { pid, stopMs, ...known }: PidRecord): string {
  const beside = `${path}.${randomBytes(8).toString('hex')}`
  writeFileSync(beside, `${pid}\n${stopMs}\n${JSON.stringify(known)}\n`, { flag: 'wx', mode: 0o600 })
  return beside
}

/** Undefined: there is no such file, or it is none of a server. @throws ServeError CONFIG */
export function readRecord(path: string): PidRecord | undefined {
  const text = readOwn(path)
  if (text === undefined) return undefined
  const [pid, stopMs, json = ''] = text.split('\n')
  if (!/^[1-9]\d{0,9}$/.test(pid ?? '')) return undefined
  const found = parseJson(json)
  const known = isObject(found) ? found : {}
  const { folder, config, socket } = known
  return {
    pid: Number(pid),
    stopMs: /^\d{1,12}$/.test(stopMs ?? '') ? Number(stopMs) : DEFAULT_STOP_MS,
    folder: typeof folder === 'string' ? folder : '',
    stopping: known['stopping'] === true,
    ...(known['inTerminal'] === true && { inTerminal: true }),
    ...(typeof config === 'string' && { config }),
    ...(typeof socket === 'string' && { socket }),
  }
}

/** Enough for three paths. */
const MAX_BYTES = 32 * 1024

/**
 * The text of a plain file; undefined for a link, and for what is no file. Another user must not decide which
 * process this one signals.
 * @throws ServeError CONFIG for a file of another user, unless this is root
 */
function readOwn(path: string): string | undefined {
  let fd: number
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  } catch {
    return undefined
  }
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) return undefined
    const user = process.getuid?.() ?? 0
    if (user !== 0 && stats.uid !== user)
      throw new ServeError(
        'CONFIG',
        `The pid file ${path} belongs to another user; set TEMP to a folder of your own`,
      )
    const bytes = Buffer.alloc(MAX_BYTES)
    return bytes.toString('utf8', 0, readSync(fd, bytes))
  } finally {
    closeSync(fd)
  }
}

/** Process title of a server, which tells it from another process that got the same pid. */
export const PROCESS_TITLE = 'torchserve-ts'

const HAS_PROC = existsSync('/proc/self/cmdline')

/** Whether this pid is a running torchserve-ts server. Zombies count as ended. */
export function isServerProcess(pid: number): boolean {
  return commandLine(pid)?.startsWith(PROCESS_TITLE) ?? false
}

/** Poll interval in milliseconds. Longer without /proc, because each `ps` is a process. */
export const POLL_MS = HAS_PROC ? 20 : 250

function commandLine(pid: number): string | undefined {
  try {
    return HAS_PROC
      ? readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      : execFileSync('ps', ['-o', 'command=', '-p', String(pid)], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        })
  } catch {
    return undefined
  }
}

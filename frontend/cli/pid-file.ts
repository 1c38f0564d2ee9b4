import { randomBytes } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  linkSync,
  mkdirSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isServerProcess } from './server-process.ts'

/**
 * Content of the pid file: the pid on line 1, as in TorchServe; on line 2 the milliseconds that stopping may
 * take.
 */
export interface PidRecord {
  readonly pid: number
  readonly stopMs: number
}

const DEFAULT_STOP_MS = 60_000

/** Path of the pid file; one server per temporary folder. */
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
  rmSync(path, { force: true })
  return undefined
}

/**
 * Writes the pid of this process, atomically, unless another server was faster.
 * @returns a function that removes the file
 * @throws ServeError CONFLICT when a server is running
 */
export function claimPidFile(path: string, stopMs: number): () => void {
  const beside = `${path}.${randomBytes(8).toString('hex')}`
  mkdirSync(join(path, '..'), { recursive: true })
  // The folder may be everybody's (/tmp): a name that nobody can foresee, and never through a link.
  writeFileSync(beside, `${process.pid}\n${stopMs}\n`, { flag: 'wx', mode: 0o600 })
  try {
    checkNotRunning(path)
    linkSync(beside, path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyRunning(path) : error
  } finally {
    rmSync(beside, { force: true })
  }
  return () => removePidFile(path, process.pid)
}

/** Removes the file if it still belongs to this process. */
export function removePidFile(path: string, pid: number): void {
  if (readRecord(path)?.pid === pid) rmSync(path, { force: true })
}

/** @throws ServeError CONFLICT when a server of this pid file is running */
export function checkNotRunning(path: string): void {
  const running = findRunning(path)
  if (running !== undefined) throw alreadyRunning(path, running.pid)
}

/** @param pid undefined: another start was faster, and has not told its pid here */
function alreadyRunning(path: string, pid = readRecord(path)?.pid): ServeError {
  return new ServeError(
    'CONFLICT',
    `TorchServe-TS is already running (pid ${pid ?? 'unknown'}, pid file ${path}): ` +
      'stop it with torchserve-ts --stop, or set TEMP to another folder for a second server',
  )
}

function readRecord(path: string): PidRecord | undefined {
  const text = readOwn(path)
  if (text === undefined) return undefined
  const [pid, stopMs] = text.split('\n')
  if (!/^[1-9]\d{0,9}$/.test(pid ?? '')) return undefined
  return { pid: Number(pid), stopMs: /^\d{1,12}$/.test(stopMs ?? '') ? Number(stopMs) : DEFAULT_STOP_MS }
}

const MAX_BYTES = 100

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
    return bytes.toString('latin1', 0, readSync(fd, bytes))
  } finally {
    closeSync(fd)
  }
}

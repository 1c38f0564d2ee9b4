import { linkSync, readFileSync, rmSync, writeFileSync, mkdirSync } from 'node:fs'
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
  const beside = `${path}.${process.pid}`
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(beside, `${process.pid}\n${stopMs}\n`)
  try {
    if (findRunning(path) !== undefined) throw alreadyRunning()
    linkSync(beside, path)
  } catch (error) {
    throw (error as NodeJS.ErrnoException).code === 'EEXIST' ? alreadyRunning() : error
  } finally {
    rmSync(beside, { force: true })
  }
  return () => removePidFile(path, process.pid)
}

/** Removes the file if it still belongs to this process. */
export function removePidFile(path: string, pid: number): void {
  if (readRecord(path)?.pid === pid) rmSync(path, { force: true })
}

export function alreadyRunning(): ServeError {
  return new ServeError(
    'CONFLICT',
    'TorchServe-TS is already running, please use torchserve-ts --stop to stop it.',
  )
}

function readRecord(path: string): PidRecord | undefined {
  try {
    const [pid, stopMs] = readFileSync(path, 'utf8').split('\n')
    if (!/^[1-9]\d{0,9}$/.test(pid ?? '')) return undefined
    return { pid: Number(pid), stopMs: /^\d{1,12}$/.test(stopMs ?? '') ? Number(stopMs) : DEFAULT_STOP_MS }
  } catch {
    return undefined
  }
}

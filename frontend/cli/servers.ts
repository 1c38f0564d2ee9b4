import { createHash } from 'node:crypto'
import { readdirSync, realpathSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ServeError } from '../../common/errors.ts'
import type { Output } from './output.ts'
import { findRunning, pidFilePath, type PidRecord, readRecord, isServerProcess, POLL_MS } from './pid-file.ts'

/** A running server of this user, and its pid file. */
export interface FoundServer extends PidRecord {
  readonly path: string
}

const NAME = /^\.model_server\.[0-9a-f]{16}\.pid$/
/** How long a start waits for a server that is stopping. */
const WAIT_MS = 15_000

/**
 * The pid file of what only one server may have: a working folder, where its logs and keys are.
 * @param claim text that names it
 */
export function claimPath(tempDir: string, claim: string): string {
  const user = process.getuid?.() ?? 0
  const name = createHash('sha256').update(`${user}\n${claim}`).digest('hex').slice(0, 16)
  return join(tempDir, `.model_server.${name}.pid`)
}

/** The working folder as servers record it. */
export function workingFolder(): string {
  return realpathSync(process.cwd())
}

/** The configuration file that the user named, as a path; undefined: none. As loadSettings chooses it. */
export function namedConfig(tsConfig: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const named = env['TS_CONFIG_FILE'] === '' ? undefined : env['TS_CONFIG_FILE']
  const path = named ?? tsConfig
  return path === undefined ? undefined : resolve(path)
}

/**
 * The running servers of this user and temporary folder, those of this working folder first. Removes the pid
 * files of servers that have ended.
 */
export function listServers(tempDir: string): FoundServer[] {
  const found = new Map<number, FoundServer>()
  for (const path of pidFiles(tempDir)) {
    const record = foundAt(path)
    if (record !== undefined && !found.has(record.pid)) found.set(record.pid, { ...record, path })
  }
  const here = workingFolder()
  const isElsewhere = ({ folder }: FoundServer): number => (folder === here ? 0 : 1)
  return [...found.values()].sort((a, b) => isElsewhere(a) - isElsewhere(b) || a.pid - b.pid)
}

/** Those with a claim first: they say more. */
function pidFiles(tempDir: string): string[] {
  let names: string[] = []
  try {
    names = readdirSync(tempDir).filter((name) => NAME.test(name))
  } catch {
    // There is no such folder, so there are no servers.
  }
  return [...names.map((name) => join(tempDir, name)), pidFilePath(tempDir)]
}

/** Files of other users are none of our business. */
function foundAt(path: string): PidRecord | undefined {
  try {
    return findRunning(path)
  } catch (error) {
    if (error instanceof ServeError) return undefined
    throw error
  }
}

/** One line for people. */
export function serverLine({ pid, folder, config }: PidRecord): string {
  const by = config === undefined ? '' : ` with ${config}`
  return `pid ${pid} in ${folder === '' ? 'an unknown folder' : folder}${by}`
}

/** @throws ServeError CONFLICT when a server of this working folder is running */
export function checkNotRunning(tempDir: string): void {
  const path = claimPath(tempDir, workingFolder())
  if (findRunning(path) !== undefined) throw alreadyRunning(path)
}

/** The error of a start in the working folder of a running server. */
export function alreadyRunning(path: string): ServeError {
  const { pid = 'unknown' } = readRecord(path) ?? {}
  return new ServeError(
    'CONFLICT',
    `TorchServe-TS is already running in this folder (pid ${pid}, pid file ${path}): ` +
      'stop it with torchserve-ts --stop, or start the second server in another folder',
  )
}

/** A start during a stop says so, and waits for a while. */
export async function waitForStopping(tempDir: string, output: Output): Promise<void> {
  const running = findRunning(claimPath(tempDir, workingFolder()))
  if (running?.stopping !== true) return
  output.err(`torchserve-ts: waiting for the server of this folder to stop (pid ${running.pid})`)
  const limit = performance.now() + Math.min(running.stopMs, WAIT_MS)
  while (isServerProcess(running.pid) && performance.now() < limit) await wait(POLL_MS)
}

/**
 * How tests start programs: as node:child_process and execa do, but each program gets a TMPDIR of its own
 * unless the test has chosen one. torch-model-archiver, for one, removes $TMPDIR/<model name>, whoever made
 * it.
 */
import * as processes from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execa as realExeca, type Options } from 'execa'

type Env = Readonly<Record<string, string | undefined>>

/**
 * The same environment with a new TMPDIR, if it has none of its own. The folder goes with that of the whole
 * run (own-temp.ts).
 */
function withTemp(env: Env): NodeJS.ProcessEnv {
  const isOwn = env['TMPDIR'] !== undefined && env['TMPDIR'] !== process.env['TMPDIR']
  return isOwn ? env : { ...env, TMPDIR: mkdtempSync(join(tmpdir(), 'tsts-tool-')) }
}

/** The options of node:child_process, which pass the environment on only if none is given. */
function inTemp<T extends { env?: NodeJS.ProcessEnv }>(options = {} as T): T {
  return { ...options, env: withTemp(options.env ?? process.env) }
}

export const spawn = ((command: string, args: string[], options?: processes.SpawnOptions) =>
  processes.spawn(command, args, inTemp(options))) as typeof processes.spawn

export const spawnSync = ((command: string, args: string[], options?: processes.SpawnSyncOptions) =>
  processes.spawnSync(command, args, inTemp(options))) as typeof processes.spawnSync

export const execFileSync = ((file: string, args: string[], options?: processes.ExecFileSyncOptions) =>
  processes.execFileSync(file, args, inTemp(options))) as typeof processes.execFileSync

type Callback = (error: processes.ExecFileException | null, stdout: string, stderr: string) => void

export function execFile(
  file: string,
  args: readonly string[],
  options: processes.ExecFileOptionsWithStringEncoding,
  callback: Callback,
): processes.ChildProcess {
  return processes.execFile(file, args, inTemp(options), callback)
}

/** execa adds the environment of this process by itself. */
export const execa = ((file: string, args: readonly string[], options: Options = {}) =>
  realExeca(file, args, { ...options, env: withTemp(options.env ?? {}) })) as unknown as typeof realExeca

import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll } from '@jest/globals'
import { build } from 'esbuild'
import { isServerProcess } from '../../frontend/cli/pid-file.ts'
import { claimPath } from '../../frontend/cli/servers.ts'
import { bundleOptions } from '../../tools/bundle.ts'
import { BUILD } from '../support/python/places.ts'
import { Command } from '../support/run-command.ts'
import { REPOSITORY } from '../support/server-process.ts'
import { tempDir } from '../support/temp.ts'
import { spawn } from '../support/tools.ts'

/** Below the checkout, where its packages are found. */
let bundled: string
const entry = (): string => join(bundled, 'tests', 'cli', 'entry.js')

// As dist is made: with a loader, every start would compile all sources again.
beforeAll(async () => {
  mkdirSync(BUILD, { recursive: true })
  bundled = mkdtempSync(join(BUILD, 'cli-'))
  await build({ ...bundleOptions(REPOSITORY), entryPoints: ['tests/cli/entry.ts'], outdir: bundled })
})

afterAll(() => rmSync(bundled, { recursive: true, force: true }))

/** A start with the store of the folder, and without tokens. */
export const START = ['--start', '--model-store', 'store', '--disable-token-auth']

export interface Finished {
  status: number | null
  out: string
  err: string
}

/** Runs the command line in its own folder, with real processes. */
export class Cli {
  readonly folder = tempDir()
  readonly #children: ChildProcess[] = []

  constructor() {
    mkdirSync(join(this.folder, 'tmp'))
    mkdirSync(join(this.folder, 'store'))
    clis.push(this)
  }

  get pidFile(): string {
    return join(this.folder, 'tmp', '.model_server.pid')
  }

  /** The pid file of the server of this folder. */
  get claim(): string {
    return claimPath(join(this.folder, 'tmp'), realpathSync(this.folder))
  }

  /** The pid of the running server. */
  get pid(): number | undefined {
    return existsSync(this.pidFile) ? Number.parseInt(readFileSync(this.pidFile, 'utf8')) : undefined
  }

  /** The content of ts_log.log. */
  get log(): string {
    const path = join(this.folder, 'logs', 'ts_log.log')
    return existsSync(path) ? readFileSync(path, 'utf8') : ''
  }

  spawn(args: string[], env: Record<string, string> = {}): ChildProcess {
    const child = spawn(process.execPath, [entry(), ...args], {
      cwd: this.folder,
      env: this.#env(env),
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children.push(child)
    return child
  }

  /** Runs a line of a shell, in which `$START` starts a server; without a terminal. */
  shell(line: string): ChildProcess {
    const start = [process.execPath, entry(), ...START].join(' ')
    const child = spawn('sh', ['-c', line], {
      cwd: this.folder,
      env: this.#env({ START: start }),
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    })
    this.#children.push(child)
    return child
  }

  /** Runs a command, which may leave a server behind that goes on writing to the same outputs. */
  command(args: string[], env: Record<string, string> = {}): Command {
    const command = new Command(process.execPath, [entry(), ...args], this.folder, this.#env(env))
    this.#children.push(command.process)
    return command
  }

  run(args: string[], env: Record<string, string> = {}): Promise<Finished> {
    return this.command(args, env).finished()
  }

  start(env: Record<string, string> = {}, ...flags: string[]): Promise<Finished> {
    return this.run([...START, ...flags], env)
  }

  #env(own: Record<string, string>): NodeJS.ProcessEnv {
    return { ...process.env, NODE_OPTIONS: '', TEMP: join(this.folder, 'tmp'), ...own }
  }

  /** Ends a leftover process of a test and reports it. */
  cleanUp(): boolean {
    const { pid } = this
    const leftServer = pid !== undefined && isServerProcess(pid)
    if (leftServer) process.kill(pid, 'SIGKILL')
    const left = this.#children.filter((child) => child.exitCode === null && child.signalCode === null)
    left.forEach((child) => child.kill('SIGKILL'))
    return leftServer || left.length > 0
  }
}

/** Output and status of a process at its end, and that of its output. */
export function finished(child: ChildProcess): Promise<Finished> {
  let out = ''
  let err = ''
  child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()))
  child.stderr!.on('data', (chunk: Buffer) => (err += chunk.toString()))
  return new Promise((resolve) => {
    child.once('close', (status) => resolve({ status, out, err }))
  })
}

/** Resolves when the child has written the text to one of its outputs. */
export function wrote(child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    let all = ''
    const look = (chunk: Buffer): void => {
      all += chunk.toString()
      if (all.includes(text)) resolve()
    }
    child.stdout!.on('data', look)
    child.stderr!.on('data', look)
    child.once('close', () => reject(new Error(`It ended without "${text}":\n${all}`)))
  })
}

const clis: Cli[] = []

afterEach(() => {
  const leaks = clis.splice(0).map((cli) => cli.cleanUp())
  if (leaks.includes(true)) throw new Error('A test left a process running')
})

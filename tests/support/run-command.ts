import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp.ts'
import { spawn } from './tools.ts'

/** A command whose outputs go to files: a server in the background keeps the outputs of its start open. */
export class Command {
  readonly process: ChildProcess
  readonly #folder = tempDir()

  constructor(file: string, args: readonly string[], cwd: string, env: NodeJS.ProcessEnv) {
    const out = openSync(join(this.#folder, 'stdout'), 'w')
    const err = openSync(join(this.#folder, 'stderr'), 'w')
    this.process = spawn(file, [...args], { cwd, env, stdio: ['ignore', out, err] })
    closeSync(out)
    closeSync(err)
  }

  /** What it, and a server that it has started, have written so far. */
  get out(): string {
    return readFileSync(join(this.#folder, 'stdout'), 'utf8')
  }

  get err(): string {
    return readFileSync(join(this.#folder, 'stderr'), 'utf8')
  }

  /** Its status at its end, and what was written until then. */
  finished(): Promise<{ status: number | null; out: string; err: string }> {
    return new Promise((resolve) => {
      this.process.once('exit', (status) => resolve({ status, out: this.out, err: this.err }))
    })
  }
}

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerOptions } from './server-process.ts'
import { tempDir } from './temp.ts'

/** Calls of the system, each with errors that it can have. `listen` makes the file of a socket. */
export const CODES = {
  mkdir: ['ENOSPC', 'EROFS', 'ENOENT'],
  open: ['ENOSPC', 'EMFILE', 'EROFS', 'ENOENT'],
  spawn: ['EMFILE', 'EAGAIN', 'ENOENT'],
  connect: ['EMFILE', 'EAGAIN', 'ENOENT'],
  listen: ['ENOSPC', 'EMFILE', 'EROFS'],
  write: ['ENOSPC', 'EROFS', 'EAGAIN'],
  rename: ['ENOSPC', 'EROFS', 'ENOENT'],
  unlink: ['EROFS', 'ENOENT'],
} as const

export type Call = keyof typeof CODES
export type Code = (typeof CODES)[Call][number]

/** A system call that fails. */
export interface Fault {
  readonly call: Call
  readonly code: Code
  /**
   * Part of its path, or of the command line that it starts, without blanks. With `$` at its end, the path
   * ends with it.
   */
  readonly text: string
  /** What makes the call; `worker`: one that runs TypeScript. Default: the server. */
  readonly by?: 'server' | 'thread' | 'worker'
}

/** Makes system calls of a server fail, from now on until they are healed. */
export class Faults {
  readonly #file = join(tempDir(), 'faults')
  /** For `startServer`. */
  readonly options: { readonly env: NonNullable<ServerOptions['env']> }

  constructor() {
    writeFileSync(this.#file, '')
    this.options = {
      env: { FAULTS: this.#file, NODE_OPTIONS: `--import ${join(import.meta.dirname, 'faults.mjs')}` },
    }
  }

  make(...faults: readonly Fault[]): void {
    writeFileSync(this.#file, faults.map((fault) => `${lineOf(fault)}\n`).join(''))
  }

  heal(): void {
    this.make()
  }

  /** How many calls have failed. @param of default: any */
  hits(of?: Fault): number {
    const path = `${this.#file}.hits`
    const hits = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : []
    return of === undefined ? hits.length : hits.filter((line) => line === lineOf(of)).length
  }
}

function lineOf({ call, code, text, by = 'server' }: Fault): string {
  return `${by} ${call} ${code} ${text}`
}

import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ServerOptions } from './server-process.ts'
import { tempDir } from './temp.ts'

/** A system call of the server that fails: `text` is in its path, or in the command line that it starts. */
export interface Fault {
  readonly call: 'mkdir' | 'open' | 'spawn' | 'connect' | 'write' | 'rename' | 'unlink'
  readonly code: 'ENOSPC' | 'EMFILE' | 'ENOENT' | 'EROFS' | 'EAGAIN'
  readonly text: string
}

/** Makes system calls of a server fail, from now on until they are healed. */
export class Faults {
  readonly #file = join(tempDir(), 'faults')
  /** For `startServer`. */
  readonly options: Pick<ServerOptions, 'nodeArgs' | 'env'>

  constructor() {
    writeFileSync(this.#file, '')
    this.options = {
      nodeArgs: ['--import', join(import.meta.dirname, 'faults.mjs')],
      env: { FAULTS: this.#file },
    }
  }

  make(...faults: readonly Fault[]): void {
    writeFileSync(this.#file, faults.map(({ call, code, text }) => `${call} ${code} ${text}\n`).join(''))
  }

  heal(): void {
    this.make()
  }

  /** How many calls have failed. */
  get hits(): number {
    const hits = `${this.#file}.hits`
    return existsSync(hits) ? readFileSync(hits, 'utf8').split('\n').length - 1 : 0
  }
}

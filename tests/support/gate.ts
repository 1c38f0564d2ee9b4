import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp.ts'

/** Holds a handler up until the test lets it go on: a file, for which handlers of JavaScript and of Python wait (handlers/gate.ts). */
export class Gate {
  readonly path = join(tempDir(), 'open')

  open(): void {
    writeFileSync(this.path, '')
  }
}

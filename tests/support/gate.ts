import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tempDir } from './temp.ts'

/**
 * Holds a handler until the test opens the gate: a file for which JavaScript and Python handlers wait
 * (handlers/gate.ts).
 */
export class Gate {
  readonly path = join(tempDir(), 'open')

  open(): void {
    writeFileSync(this.path, '')
  }
}

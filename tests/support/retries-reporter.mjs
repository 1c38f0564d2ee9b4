import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A jest reporter that counts the retries of a run (retries.ts), in one file for all its processes, and
 * prints them at the end.
 */
export default class RetriesReporter {
  onRunStart() {
    this.folder = mkdtempSync(join(tmpdir(), 'tsts-retries-'))
    process.env.TEST_RETRIES_FILE = join(this.folder, 'retries')
    writeFileSync(process.env.TEST_RETRIES_FILE, '')
  }

  onRunComplete() {
    const lines = readFileSync(process.env.TEST_RETRIES_FILE, 'utf8')
    if (lines !== '') process.stderr.write(`Tried again in this run:\n${lines}`)
    rmSync(this.folder, { recursive: true, force: true })
  }
}

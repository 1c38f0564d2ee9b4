import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let folder: string | undefined

/**
 * What tools would remove that were started without a TMPDIR of their own: the tests' models often have
 * this name.
 */
const PLANTED = join('m', 'planted')

/**
 * Before all tests (jest's globalSetup): what any of them leaves in TMPDIR lies in one folder that belongs
 * to this run.
 */
export function makeOwnTemp(): void {
  folder = mkdtempSync(join(tmpdir(), 'tsts-run-'))
  mkdirSync(join(folder, 'm'))
  writeFileSync(join(folder, PLANTED), '')
  process.env['TMPDIR'] = folder
}

/** After all tests. @throws Error when one of them removed what it did not make */
export function removeOwnTemp(): void {
  if (folder === undefined) return
  const isThere = existsSync(join(folder, PLANTED))
  rmSync(folder, { recursive: true, force: true })
  if (!isThere)
    throw new Error('A test removed $TMPDIR/m: a program was started without tests/support/tools.ts')
}

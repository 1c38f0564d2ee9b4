import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { createArchive } from '../../model-archiver/pack.ts'
import { REPOSITORY } from './server.ts'

/** Archives, and what attackers do to them. */

const ECHO = join(REPOSITORY, 'model-store', 'echo', 'handler.ts')

/** Packs the echo model as NAME.mar. @returns its path */
export function packEcho(store: string, modelName: string, more: { version?: string } = {}): Promise<string> {
  const source = { modelName, version: '1.0', handler: ECHO, exportPath: store, force: true }
  return createArchive({ ...source, ...more })
}

export function sha256(path: string): string {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}

/**
 * The same model with other bytes: the time of the first entry, which no checksum of the zip covers and no
 * unpacking looks at.
 */
export function changeOneByte(archive: string): void {
  const bytes = readFileSync(archive)
  bytes[10] = bytes[10]! ^ 1
  writeFileSync(archive, bytes)
}

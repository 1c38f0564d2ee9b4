import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createHash } from 'node:crypto'
import { createArchive } from '../../model-archiver/pack.ts'
import { REPOSITORY } from './server.ts'
import { tempDir } from './temp.ts'
import { execFileSync } from './tools.ts'

/** Archives, keys of OpenSSH, and what attackers do to them. */

const ECHO = join(REPOSITORY, 'model-store', 'echo', 'handler.ts')

/** A new key pair; the public key is in PATH.pub. @returns PATH */
export function makeKey(name: string): string {
  const path = join(tempDir(), name)
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', name, '-f', path])
  return path
}

/** An allowed_signers file. */
export function signersFile(...keys: string[]): string {
  const path = join(tempDir(), 'signers')
  writeSigners(path, ...keys)
  return path
}

export function writeSigners(path: string, ...keys: string[]): void {
  const lines = keys.map((key) => `${readFileSync(`${key}.pub`, 'utf8').trim()}\n`)
  writeFileSync(path, `# who may sign\n\n${lines.join('')}`)
}

/** Packs the echo model as NAME.mar, signed if there is a key. @returns its path */
export function packEcho(
  store: string,
  modelName: string,
  more: { sign?: string; version?: string } = {},
): Promise<string> {
  const source = { modelName, version: '1.0', handler: ECHO, exportPath: store, force: true }
  return createArchive({ ...source, ...more })
}

/** Signs as a user does, with any namespace. */
export function signByHand(archive: string, key: string, namespace: string): void {
  const input = readFileSync(archive)
  const signature = execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-n', namespace, '-f', key], { input })
  writeFileSync(`${archive}.sig`, signature)
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

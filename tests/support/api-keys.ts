import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { digestOf } from '../../frontend/auth/gatekeeper.ts'
import { tempDir } from './temp.ts'

/** An entry of api_keys_file, whose key is `tsk_NAME`. */
export interface TestKey {
  readonly name: string
  readonly scopes: readonly string[]
  readonly models?: readonly string[]
}

/** Writes an api_keys_file. @returns its path */
export function writeApiKeys(keys: readonly TestKey[], path = join(tempDir(), 'keys.json')): string {
  const entries = keys.map((key) => ({ ...key, sha256: digestOf(`tsk_${key.name}`) }))
  writeFileSync(path, JSON.stringify({ keys: entries }))
  return path
}

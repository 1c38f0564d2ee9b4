import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Inputs that reached new code, and inputs that were findings; both are tests (corpus.test.ts). */
export const CORPUS = join(import.meta.dirname, 'corpus')
/** Where a run that nobody watches leaves new ones. */
export const FINDINGS = join(import.meta.dirname, 'findings')

export function inputsOf(folder: string, target: string): Buffer[] {
  const path = join(folder, target)
  return existsSync(path)
    ? readdirSync(path)
        .sort()
        .map((name) => readFileSync(join(path, name)))
    : []
}

/** Writes an input under the hash of its bytes; returns the path. */
export function keep(folder: string, target: string, input: Uint8Array): string {
  const path = join(folder, target)
  mkdirSync(path, { recursive: true })
  const file = join(path, createHash('sha256').update(input).digest('hex').slice(0, 16))
  writeFileSync(file, input)
  return file
}

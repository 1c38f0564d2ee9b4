import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach } from '@jest/globals'

const folders: string[] = []

/** A new folder, removed after the test. */
export function tempFolder(files: Record<string, string | Buffer> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'archiver-test-'))
  folders.push(folder)
  writeTree(folder, files)
  return folder
}

export function writeTree(folder: string, files: Record<string, string | Buffer>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

/** Name -> content of every file below a folder. Links count as what they point to. */
export function readTree(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  const files = names.filter((name) => statSync(join(folder, name)).isFile())
  return Object.fromEntries(files.map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/** The code and message of what a promise is rejected with. */
export async function failure(promise: Promise<unknown>): Promise<{ code: string; message: string }> {
  try {
    await promise
  } catch (error) {
    const { code, message } = error as { code: string; message: string }
    return { code, message }
  }
  throw new Error('It did not fail')
}

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

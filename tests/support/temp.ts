import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from '@jest/globals'

const folders: string[] = []
const ends: (() => Promise<unknown>)[] = []

/** A folder of its own for a test file; removed at its end. */
export function tempDir(): string {
  const folder = mkdtempSync(join(tmpdir(), 'tsts-test-'))
  folders.push(folder)
  return folder
}

/** Before the folders of the test file are removed: a server that still runs writes into them. */
export function beforeRemoval(end: () => Promise<unknown>): void {
  ends.push(end)
}

afterAll(async () => {
  try {
    await Promise.all(ends.map((end) => end()))
  } finally {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
  }
})

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

let folder: string | undefined

/** A path in this run's folder for sockets, configurations and request bodies. */
export function scratch(name: string): string {
  folder ??= mkdtempSync(join(tmpdir(), 'ts-bench-'))
  return join(folder, name)
}

export function removeScratch(): void {
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
}

import { mkdtemp, rm } from 'node:fs/promises'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeAtExit } from '../../model-archiver/workspace.ts'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A temporary folder for a command that checks archives; it is also gone when a signal ends the command. */
export interface CheckFolder {
  readonly tempDir: string
  dispose(): Promise<void>
}

export async function checkFolder(): Promise<CheckFolder> {
  for (const signal of SIGNALS) process.on(signal, exitFor)
  const tempDir = await mkdtemp(join(tmpdir(), 'torchserve-ts-check-'))
  const removed = removeAtExit(tempDir)
  const dispose = async (): Promise<void> => {
    await rm(tempDir, { recursive: true, force: true })
    removed()
    for (const signal of SIGNALS) process.off(signal, exitFor)
  }
  return { tempDir, dispose }
}

/** Ends with the status that a shell shows for that signal. */
function exitFor(signal: NodeJS.Signals): void {
  process.exit(128 + constants.signals[signal])
}

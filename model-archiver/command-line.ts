import { escapeControls } from '../common/escape-controls.ts'
import type { PackResult } from './pack.ts'

/** The items of a comma-separated flag. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Prints the archive's path and notes for its user. */
export function reportPacked({ path, externals, warnings }: PackResult): void {
  for (const warning of warnings) console.error(`warning: ${oneLine(warning)}`)
  console.log(`Wrote ${escapeControls(path)}`)
  if (externals.length > 0)
    console.log(
      `Not in the archive, to be installed where it is served: ${escapeControls(externals.join(', '))}`,
    )
}

/** Reports every error as one line on stderr and exit code 1. */
export async function runCommand(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    console.error(`error: ${oneLine(error instanceof Error ? error.message : String(error))}`)
    process.exitCode = 1
  }
}

function oneLine(text: string): string {
  return escapeControls(text.replace(/\s*\n\s*/g, ' '))
}

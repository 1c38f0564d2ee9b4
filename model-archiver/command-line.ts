import type { PackResult } from './pack.ts'

/** The items of a flag, divided by commas. */
export function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

/** Says where the archive is, and what its user should know. */
export function reportPacked({ path, externals, warnings }: PackResult): void {
  for (const warning of warnings) console.error(`warning: ${oneLine(warning)}`)
  console.log(`Wrote ${path}`)
  if (externals.length > 0)
    console.log(`Not in the archive, to be installed where it is served: ${externals.join(', ')}`)
}

/** Every mistake is one line on stderr and exit code 1. */
export async function runCommand(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    console.error(`error: ${oneLine(error instanceof Error ? error.message : String(error))}`)
    process.exitCode = 1
  }
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}

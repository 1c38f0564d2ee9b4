import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { HandlerRequest } from 'torchserve-ts'

/** The folder of this worker's socket. */
const folder = dirname(process.argv[process.argv.indexOf('--sock-name') + 1]!)

/** Leaves as many files in the folder of its socket as asked, and folders in each other with long names. */
export function handle([request]: HandlerRequest[]): string[] {
  const { files, depth } = request!['body'] as { files: number; depth: number }
  for (let n = 0; n < files; n += 1) writeFileSync(join(folder, `file${n}`), '')
  const before = process.cwd()
  process.chdir(folder)
  for (let n = 0; n < depth; n += 1) {
    const name = 'd'.repeat(250)
    if (!existsSync(name)) mkdirSync(name)
    process.chdir(name)
    writeFileSync('left', '')
  }
  process.chdir(before)
  return [folder]
}

import { readdirSync } from 'node:fs'
import { join } from 'node:path'

/**
 * All files, folders and links below a folder, as paths in it. A link is listed and not followed, unlike by
 * the recursive `readdir` of Node.js 24: links of unpacked models lead to all packages, which other tests
 * change.
 */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    if (!entry.isDirectory()) return [entry.name]
    const below = filesBelow(join(folder, entry.name))
    return [entry.name, ...below.map((path) => join(entry.name, path))]
  })
}

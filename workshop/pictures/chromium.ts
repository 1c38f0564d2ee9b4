import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']

/** The Chromium of the machine. @throws Error: there is none in PATH */
export function chromiumPath(): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  const paths = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)))
  const found = paths.find((path) => existsSync(path))
  if (found === undefined) throw new Error('Chromium must be in PATH: apt-get install chromium')
  return found
}

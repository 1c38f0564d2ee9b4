import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the installed package: the nearest one upwards with a package.json. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)))

/** Folder with the .proto files. */
export const protoDir = join(packageRoot, 'proto')

export const version = (
  JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }
).version

function findRoot(from: string): string {
  if (existsSync(join(from, 'package.json'))) return from
  const parent = dirname(from)
  if (parent === from) throw new Error('The package.json of torchserve-ts is missing')
  return findRoot(parent)
}

import { isBuiltin } from 'node:module'
import { isAbsolute } from 'node:path'

/** Never bundled, and never missing: a handler shares the worker's copy of this package. */
export const SELF = 'torchserve-ts'

/** `@scope/name/sub` -> `@scope/name`. Undefined for paths, `#internal` names and modules of Node itself. */
export function packageNameOf(specifier: string): string | undefined {
  if (specifier.startsWith('node:') || isBuiltin(specifier) || isAbsolute(specifier)) return undefined
  return /^(@[^/]+\/[^/.][^/]*|[^@./#][^/]*)(\/|$)/.exec(specifier)?.[1]
}

/** Folder and name of the installed package that contains a file; undefined outside node_modules. */
export function installedPackage(file: string): { name: string; folder: string } | undefined {
  const path = file.replace(/\\/g, '/')
  const start = path.lastIndexOf('/node_modules/') + '/node_modules/'.length
  if (start < '/node_modules/'.length) return undefined
  const name = packageNameOf(path.slice(start))
  return name === undefined ? undefined : { name, folder: file.slice(0, start + name.length) }
}

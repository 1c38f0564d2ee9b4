import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { importedBuiltin } from './builtin-handlers.ts'
import { runEsbuild } from './esbuild.ts'
import { packageNameOf, SELF } from './package-names.ts'
import { Reach } from './reach.ts'

/**
 * The packages that a handler imports when it is loaded, also through a built-in handler, and that Node does
 * not find from there; sorted.
 * @param script absolute path of a module that Node can import
 * @param isOurs whether it is a built-in handler; of a model only files beside it are read
 * @throws ServeError INVALID_MODEL when it cannot be read as a module
 */
export async function missingPackages(script: string, isOurs = false): Promise<string[]> {
  const { metafile } = await runEsbuild(script, join(dirname(script), 'never-written.mjs'), {
    write: false,
    packages: 'external',
    plugins: isOurs ? [] : [Reach.ofArchive(dirname(script)).plugin(() => ({ contents: '' }))],
    absWorkingDir: dirname(script),
  })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  const paths = imports
    .filter(({ external, kind }) => external === true && kind === 'import-statement')
    .map(({ path }) => path)
  const names = paths.map(packageNameOf).filter((name) => name !== undefined)
  const builtins = paths.map(importedBuiltin).filter((module) => module !== undefined)
  const below = await Promise.all([...new Set(builtins)].map((module) => missingPackages(module, true)))
  const { resolve } = createRequire(script)
  // Every worker gets this package from the server.
  const isFound = (name: string): boolean =>
    name === SELF || (resolve.paths(name) ?? []).some((folder) => existsSync(join(folder, name)))
  return [...new Set([...names.filter((name) => !isFound(name)), ...below.flat()])].sort()
}

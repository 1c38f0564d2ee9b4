import { chmod, copyFile, cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { REPOSITORY, STAND_INS } from './places.ts'
import type { Workspace } from './workspace.ts'

const SHIMS = fileURLToPath(new URL('shims/', import.meta.url))
const PYTHON = fileURLToPath(new URL('python/', import.meta.url))

/**
 * Puts `torchserve` and the archivers on the PATH of the tests, and our packaging function into their Python
 * package.
 */
export async function makeCommands(space: Workspace): Promise<void> {
  await makeServerCommand(space)
  await command(space, 'torch-model-archiver', await bundle(space, 'torch-model-archiver'))
  await command(
    space,
    'torch-workflow-archiver',
    join(REPOSITORY, 'dist', 'model-archiver', 'workflow-cli.js'),
  )
  await copyFile(
    join(PYTHON, 'model_packaging.py'),
    join(space.checkout, 'model-archiver', 'model_archiver', 'model_packaging.py'),
  )
}

/** Only the server is ours: the archivers are TorchServe's. */
export async function makeServerCommand(space: Workspace): Promise<void> {
  await command(space, 'torchserve', join(REPOSITORY, 'dist', 'frontend', 'cli.js'))
  await cp(PYTHON, space.python, { recursive: true })
}

async function bundle(space: Workspace, name: string): Promise<string> {
  const outfile = join(space.bin, `${name}.mjs`)
  const constants = {
    ARCHIVER: join(REPOSITORY, 'dist', 'model-archiver', 'cli.js'),
    MODELS: STAND_INS,
    NETWORKS: space.archives,
  }
  await build({
    entryPoints: [join(SHIMS, `${name}.ts`)],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    logLevel: 'warning',
    define: Object.fromEntries(Object.entries(constants).map(([key, value]) => [key, JSON.stringify(value)])),
  })
  return outfile
}

async function command(space: Workspace, name: string, script: string): Promise<void> {
  const path = join(space.bin, name)
  await writeFile(path, `#!/bin/sh\nexec '${process.execPath}' '${script}' "$@"\n`)
  await chmod(path, 0o755)
}

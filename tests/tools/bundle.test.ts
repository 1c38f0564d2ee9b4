import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { build, type Metafile } from 'esbuild'
import { bundleOptions } from '../../tools/bundle.ts'
import { REPOSITORY } from '../support/server.ts'

/** Packages whose code is read with these modules: what only `await import` names is left out. */
async function packagesOf(...modules: string[]): Promise<string[]> {
  const { metafile } = await build({
    ...{ absWorkingDir: REPOSITORY, entryPoints: modules, outdir: 'dist', bundle: true, splitting: true },
    ...{ platform: 'node', format: 'esm', metafile: true, write: false, logLevel: 'error' },
    external: ['esbuild', 'msgpackr-extract'],
  })
  const read = new Set<string>()
  for (const module of modules) follow(module, metafile.inputs, read)
  const names = [...read].map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1])
  return [...new Set(names.filter((name) => name !== undefined))].sort()
}

function follow(path: string, files: Metafile['inputs' | 'outputs'], read: Set<string>): void {
  if (read.has(path)) return
  read.add(path)
  for (const { kind, path: next, external } of files[path]!.imports)
    if (kind !== 'dynamic-import' && external !== true) follow(next, files, read)
}

test('a start reads no package that only other commands, some calls or some settings need', async () => {
  const packages = await packagesOf('frontend/cli/serve.ts', 'frontend/server.ts', 'frontend/listeners.ts')
  expect(packages).toEqual(expect.arrayContaining(['@grpc/grpc-js', 'execa', 'msgpackr', 'pino']))
  const spared = ['koa', '@koa/router', 'jose', 'zod', 'yaml', 'tar', 'yauzl', 'yazl', 'commander']
  expect(packages.filter((name) => spared.includes(name) || name.startsWith('@opentelemetry/'))).toEqual([])
})

test('a worker reads no package but the one of its protocol', async () => {
  expect(await packagesOf('backend-worker/main.ts')).toEqual(['msgpackr'])
})

test('a command reads no other module before it knows that Node.js is new enough', async () => {
  const { metafile } = await build({ ...bundleOptions(REPOSITORY), write: false })
  const { bin } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    bin: Record<string, string>
  }
  for (const output of Object.values(bin)) {
    const read = new Set<string>()
    follow(output, metafile.outputs, read)
    const modules = [...read].flatMap((path) => Object.keys(metafile.outputs[path]!.inputs))
    expect(modules.sort()).toEqual(['common/node-version.ts', metafile.outputs[output]!.entryPoint])
  }
})

test('an installation has the packages that dist does not contain, and no others', async () => {
  const description = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as Record<
    'dependencies' | 'optionalDependencies',
    Record<string, string>
  >
  const installed = Object.keys({ ...description.dependencies, ...description.optionalDependencies })
  expect((await outsidePackages()).sort()).toEqual(installed.sort())
})

/** What dist imports or requires, without Node.js, this package itself and optional runtimes of models. */
async function outsidePackages(): Promise<string[]> {
  const { metafile } = await build({ ...bundleOptions(REPOSITORY), write: false })
  const imports = Object.values(metafile.outputs).flatMap((output) => output.imports)
  const named = imports.filter(({ external }) => external === true).map(({ path }) => path)
  const required = Object.keys(metafile.outputs)
    .filter((path) => path.endsWith('.js'))
    .flatMap((path) => [...readFileSync(join(REPOSITORY, path), 'utf8').matchAll(REQUIRED)])
    .map((match) => match[1]!)
  const packages = [...named, ...required].map((path) => path.replace(/^((?:@[^/]+\/)?[^/]+).*/, '$1'))
  const peers = ['torchserve-ts', 'node-llama-cpp', '@huggingface/jinja']
  return [...new Set(packages)].filter((name) => !isBuiltin(name) && !peers.includes(name))
}

/** Calls of what createRequire returns, which a bundler does not see. */
const REQUIRED = /(?:\bcreateRequire\d*\(import\.meta\.url\)|\brequireOnDemand)\("([@\w][\w@/.-]*)"\)/g

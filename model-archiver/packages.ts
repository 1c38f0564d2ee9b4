import { isBuiltin, createRequire } from 'node:module'
import { isAbsolute, dirname, join } from 'node:path'
import { existsSync } from 'node:fs'
import type { OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild'
import { importedBuiltin } from './builtin-handlers.ts'
import { runEsbuild } from './esbuild.ts'
import { Reach } from './reach.ts'
import { readdir, readFile } from 'node:fs/promises'
import { isObject, parseJson } from '../common/json.ts'

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

/** Results of the plugin. */
export interface OutsidePackages {
  /** Packages imported by other packages but not installed. Often optional. */
  readonly missing: Set<string>
}

/** Marks a resolution that the plugin itself requested. */
const OWN = Symbol('own resolution')

/**
 * An esbuild plugin that leaves native packages outside the bundle, and packages that only other packages
 * lack.
 */
export function outsidePackages(found: OutsidePackages): Plugin {
  const native = new Map<string, Promise<boolean>>()
  const isNative = (folder: string): Promise<boolean> => {
    const known = native.get(folder) ?? isNativePackage(folder)
    native.set(folder, known)
    return known
  }
  return {
    name: 'outside-packages',
    setup(build) {
      build.onResolve({ filter: /^[^./#]/ }, (args) => resolve(build, args, found, isNative))
    },
  }
}

async function resolve(
  build: PluginBuild,
  args: OnResolveArgs,
  found: OutsidePackages,
  isNative: (folder: string) => Promise<boolean>,
): Promise<OnResolveResult | undefined> {
  const name = packageNameOf(args.path)
  if (args.pluginData === OWN || args.kind === 'entry-point' || name === undefined) return undefined
  const { kind, importer, resolveDir, namespace } = args
  const result = await build.resolve(args.path, { kind, importer, resolveDir, namespace, pluginData: OWN })
  if (result.external) return undefined
  const outside = { path: args.path, external: true }
  if (result.errors.length > 0) {
    // The handler's own imports must exist; a package may have imports that are never reached.
    if (installedPackage(importer) === undefined) return undefined
    found.missing.add(name)
    return outside
  }
  const owner = installedPackage(result.path)
  return owner !== undefined && (await isNative(owner.folder)) ? outside : undefined
}

/** Packages that only native packages depend on. */
const NATIVE_HELPERS = [
  'bindings',
  'nan',
  'node-addon-api',
  'node-gyp-build',
  'node-gyp-build-optional-packages',
  'node-pre-gyp',
  '@mapbox/node-pre-gyp',
  'prebuild-install',
  'cmake-js',
]
const NATIVE_SCRIPT = /node-gyp|node-pre-gyp|prebuild|cmake-js|napi/
/** `@img/sharp-linux-x64`, `@node-llama-cpp/mac-arm64-metal`, `@swc/core-win32-x64-msvc`, ... */
const PLATFORM_NAME =
  /(^|[-/_.])(darwin|mac|macos|linux|linuxmusl|win|win32|windows|android|freebsd|openbsd|netbsd|sunos|aix)[-_](x64|x86_64|x86|ia32|arm|arm64|armv6|armv7|armv7l|aarch64|ppc64|ppc64le|riscv64|s390x|loong64|universal)([-_.]|$)/

/** Folder depth of the search for addons. Deeper packages are judged by their package.json alone. */
const MAX_DEPTH = 8
const MAX_ENTRIES = 5000

interface PackageJson {
  gypfile?: unknown
  binary?: unknown
  napi?: unknown
  os?: unknown
  cpu?: unknown
  libc?: unknown
  scripts?: Record<string, string | undefined>
  dependencies?: Record<string, unknown>
  optionalDependencies?: Record<string, unknown>
}

/**
 * Whether a package contains machine code, so that it cannot be bundled: its package.json says so, it has a
 * binding.gyp, optional dependencies per platform, or a *.node file.
 * @param folder of the package
 */
export async function isNativePackage(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, 'package.json'), 'utf8').catch(() => '{}')
  return declaresNative(parse(text)) || (await hasAddon(folder))
}

function parse(text: string): PackageJson {
  const value = parseJson(text)
  return isObject(value) ? value : {}
}

function declaresNative(json: PackageJson): boolean {
  if (json.gypfile === true || isSet(json.binary) || isSet(json.napi)) return true
  if (isSet(json.os) || isSet(json.cpu) || isSet(json.libc)) return true
  if (NATIVE_SCRIPT.test(json.scripts?.['install'] ?? '')) return true
  const dependencies = Object.keys(json.dependencies ?? {})
  if (dependencies.some((name) => NATIVE_HELPERS.includes(name))) return true
  return Object.keys(json.optionalDependencies ?? {}).some((name) => PLATFORM_NAME.test(name))
}

function isSet(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length > 0
}

async function hasAddon(root: string): Promise<boolean> {
  const waiting = [{ folder: root, depth: 0 }]
  let entries = 0
  for (let next = waiting.pop(); next !== undefined && entries < MAX_ENTRIES; next = waiting.pop()) {
    const { folder, depth } = next
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      entries += 1
      if (entry.name.endsWith('.node') || entry.name === 'binding.gyp') return true
      if (entry.isDirectory() && entry.name !== 'node_modules' && depth < MAX_DEPTH)
        waiting.push({ folder: join(folder, entry.name), depth: depth + 1 })
    }
  }
  return false
}

import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isObject, parseJson } from '../common/json.ts'

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

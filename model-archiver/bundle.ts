import type { BuildOptions, Message, Plugin } from 'esbuild'
import { realpathSync } from 'node:fs'
import { appendFile, readFile, rm } from 'node:fs/promises'
import { dirname, relative, resolve, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ServeError, absent } from '../common/errors.ts'
import { buildMessages, formatMessage, runEsbuild } from './esbuild.ts'
import { outsidePackages, installedPackage, packageNameOf, SELF } from './packages.ts'
import { Reach } from './reach.ts'

export interface BundleOptions {
  /** Absolute path of the handler, TypeScript or JavaScript. */
  readonly entry: string
  /** Absolute path of the output module. Its folder is made if needed. */
  readonly outFile: string
  /** Packages to leave outside the bundle, besides the native ones, which are detected. */
  readonly external?: readonly string[]
}

export interface BundleResult {
  /** Packages outside the bundle, sorted; they must be installed where it runs. Excludes torchserve-ts. */
  readonly externals: readonly string[]
  readonly warnings: readonly string[]
}

const MAX_ATTEMPTS = 10

/** Bundled CommonJS packages need `require` and `__dirname`, which ES modules lack. */
const COMMONJS_BANNER =
  "import { createRequire as __tsCreateRequire } from 'node:module'; " +
  "import { fileURLToPath as __tsToPath } from 'node:url'; " +
  'const require = __tsCreateRequire(import.meta.url); ' +
  "const __tsFile = __tsToPath(import.meta.url), __tsFolder = __tsToPath(new URL('.', import.meta.url));"

/**
 * Bundles a handler and everything that it imports into one ES module for an archive. Native packages,
 * torchserve-ts and `external` stay imports.
 * @throws ServeError INVALID_MODEL when it cannot be bundled
 */
export async function bundleHandler(options: BundleOptions): Promise<BundleResult> {
  const external = new Set(options.external)
  for (let attempt = 1; ; attempt++) {
    try {
      return await bundleOnce(options, [...external])
    } catch (error) {
      const native = packagesWithAddons(error)
      if (native.length === 0 || attempt === MAX_ATTEMPTS) throw error
      for (const name of native) external.add(name)
    }
  }
}

async function bundleOnce(options: BundleOptions, external: readonly string[]): Promise<BundleResult> {
  const missing = new Set<string>()
  const reach = Reach.ofFolder(dirname(options.entry))
  const { metafile, warnings } = await runEsbuild(options.entry, options.outFile, {
    external: withSubpaths([SELF, ...external]),
    ...within(reach, options.entry, [outsidePackages({ missing })]),
    define: { __filename: '__tsFile', __dirname: '__tsFolder' },
    banner: await bannerFor(options.entry),
    absWorkingDir: dirname(options.entry),
    // Without the sources: an archive need not have them.
    sourcemap: 'external',
    sourcesContent: false,
  })
  await appendMap(options)
  const externals = importedPackages(metafile.outputs).filter((name) => !missing.has(name))
  return { externals, warnings: [...[...missing].sort().map(missingWarning), ...warnings.map(formatMessage)] }
}

/**
 * Puts the map at the end of the module, so that stack traces lead to the author's lines. Its sources are
 * named by their paths from the handler's folder, without leading `..`: they tell nothing of the machine, and
 * the same sources give the same bytes.
 */
async function appendMap({ entry, outFile }: BundleOptions): Promise<void> {
  const file = `${outFile}.map`
  const map = JSON.parse(await readFile(file, 'utf8')) as { sources: string[] }
  const shown = (source: string): string =>
    relative(dirname(entry), resolve(dirname(outFile), source))
      .split(sep)
      .filter((part) => part !== '..')
      .join('/')
  const json = JSON.stringify({ ...map, sources: map.sources.map(shown) })
  const comment = `//# sourceMappingURL=data:application/json;base64,${Buffer.from(json).toString('base64')}\n`
  await appendFile(outFile, comment)
  await rm(file)
}

/**
 * Compiles a handler that stays in its folder: TypeScript becomes JavaScript and its own files one module;
 * every package stays an import. `import.meta.url` and `__dirname` still refer to the handler's folder.
 * @returns the absolute paths of the files that it was compiled from
 * @throws ServeError INVALID_MODEL when it cannot be compiled
 */
export async function compileHandler(entry: string, outFile: string, reach: Reach): Promise<string[]> {
  const { metafile } = await runEsbuild(entry, outFile, {
    ...within(reach, entry),
    packages: 'external',
    external: withSubpaths([SELF]),
    sourcemap: 'inline',
    define: {
      'import.meta.url': JSON.stringify(pathToFileURL(entry).href),
      'import.meta.filename': JSON.stringify(entry),
      'import.meta.dirname': JSON.stringify(dirname(entry)),
      __filename: JSON.stringify(entry),
      __dirname: JSON.stringify(dirname(entry)),
    },
    banner: await bannerFor(entry),
    absWorkingDir: dirname(entry),
  })
  return Object.keys(metafile.inputs).map((path) => resolve(dirname(entry), path))
}

/** @throws ServeError INVALID_MODEL: esbuild would read a package.json that another user may have written */
function within(
  reach: Reach,
  entry: string,
  plugins: readonly Plugin[] = [],
): Pick<BuildOptions, 'plugins' | 'tsconfig'> {
  const real = realpathSync(entry)
  const foreign = reach.foreignPackage(real)
  const tsconfig = reach.tsconfig(real)
  if (foreign === undefined)
    return { plugins: [...plugins, reach.plugin()], ...(tsconfig !== undefined && { tsconfig }) }
  const why = `would apply to the handler, and other users can write in its folder`
  throw new ServeError('INVALID_MODEL', `${foreign} ${why}. Put a package.json into ${reach.root}`)
}

/** Empty for a handler that was already bundled, as in an unpacked archive: it has the banner. */
async function bannerFor(entry: string): Promise<{ js?: string }> {
  const source = await readFile(entry, 'utf8').catch(absent)
  return source?.startsWith(COMMONJS_BANNER) === true ? {} : { js: COMMONJS_BANNER }
}

function withSubpaths(names: readonly string[]): string[] {
  return names.flatMap((name) => [name, `${name}/*`])
}

function importedPackages(
  outputs: Record<string, { imports: { path: string; external?: boolean }[] }>,
): string[] {
  const paths = Object.values(outputs).flatMap((output) => output.imports.filter((item) => item.external))
  const names = paths.map((item) => packageNameOf(item.path)).filter((name) => name !== undefined)
  return [...new Set(names)].filter((name) => name !== SELF).sort()
}

/** Packages with files that the bundler cannot include, because they are machine code. */
function packagesWithAddons(error: unknown): string[] {
  if (!(error instanceof ServeError)) return []
  const names = buildMessages(error).filter(isAddonMessage).map(owner)
  return names.filter((name) => name !== undefined)
}

function isAddonMessage(message: Message): boolean {
  return message.text.startsWith('No loader is configured for ".node" files')
}

function owner(message: Message): string | undefined {
  return installedPackage(`/${message.location?.file ?? ''}`)?.name
}

function missingWarning(name: string): string {
  return `Package ${name} is not installed here, so the import of it stays outside the bundle.`
}

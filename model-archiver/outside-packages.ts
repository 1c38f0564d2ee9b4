import type { OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild'
import { isNativePackage } from './native-packages.ts'
import { installedPackage, packageNameOf } from './package-names.ts'

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

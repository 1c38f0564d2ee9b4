import { existsSync, realpathSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** Folder of the running torchserve-ts package: the nearest parent with a package.json. */
export function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) folder = dirname(folder)
  return folder
}

/** A module of the build that is an entry of its own (tools/build.ts), by its path below dist. */
export function builtModule(path: string): string {
  return join(packageRoot(), 'dist', path)
}

/**
 * The module of a thread, by its path below the root without its ending. From TypeScript sources (tests, tsx)
 * a thread needs a loader: the module beside it registers one.
 */
export function threadModule(path: string): URL {
  const isSource = import.meta.url.endsWith('.ts')
  return pathToFileURL(isSource ? join(packageRoot(), `${path}-from-source.mjs`) : builtModule(`${path}.js`))
}

/**
 * The node_modules folder with the server's dependencies.
 *
 * For an installed package it is the folder that contains the package (npm), or the project's (pnpm, which
 * keeps packages in node_modules/.pnpm); for a checkout the nearest parent's that contains the server's
 * dependencies.
 */
export function serverModules(root: string): string | undefined {
  const pnpm = /^(.*?[/\\]node_modules)[/\\]\.pnpm[/\\]/.exec(root)
  if (pnpm !== null) return pnpm[1]
  if (/[/\\]node_modules$/.test(dirname(root))) return dirname(root)
  for (let folder = root; ; folder = dirname(folder)) {
    if (existsSync(join(folder, 'node_modules', 'koa'))) return join(folder, 'node_modules')
    if (dirname(folder) === folder) return undefined
  }
}

/**
 * The node_modules folder through which a command of the package was called, if the package is a link there
 * (a `file:` dependency, or `npm link`): archives find the packages of that project beside the server's.
 * @param command path of the script that runs, as it was called
 */
export function linkingModules(root: string, command = process.argv[1]): string[] {
  const [, modules] = /^(.*[/\\]node_modules)[/\\]/.exec(command ?? '') ?? []
  if (modules === undefined || modules === serverModules(root)) return []
  const link = join(modules, 'torchserve-ts')
  return existsSync(link) && realpathSync(link) === realpathSync(root) ? [modules] : []
}

/**
 * `dd/mm/yyyy HH:MM:SS`, as TorchServe writes it. SOURCE_DATE_EPOCH (seconds) fixes it for reproducible
 * archives.
 */
export function createdOn(): string {
  const epoch = Number(process.env['SOURCE_DATE_EPOCH'] ?? NaN)
  const [date, time] = new Date(Number.isFinite(epoch) ? epoch * 1000 : Date.now()).toISOString().split('T')
  return `${date!.split('-').reverse().join('/')} ${time!.slice(0, 8)}`
}

/** Version of this package, for archiverVersion in manifests. */
export function ownVersion(): string {
  const json = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  return json.version
}

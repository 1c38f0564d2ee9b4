import { existsSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { OnLoadArgs, OnLoadResult, Plugin } from 'esbuild'
import { isScript } from './handler-entry.ts'

/**
 * Where esbuild and Node look for a model's node_modules, package.json and tsconfig.json: whoever can write
 * there decides which code runs as the server's user.
 */
export class Reach {
  /** Absolute real path of the model's files. */
  readonly root: string
  /** Folders above it that are searched too; undefined: an archive, whose workspace ends the search. */
  readonly #open: ReadonlySet<string> | undefined

  private constructor(root: string, open?: readonly string[]) {
    this.root = root
    this.#open = open && new Set(open)
  }

  /** An archive has its own files, and the packages that the server links to. */
  static ofArchive(folder: string): Reach {
    return new Reach(realpathSync(folder))
  }

  /** The user's own folder also uses the folders above it, but none in which another user can write. */
  static ofFolder(folder: string): Reach {
    const root = realpathSync(folder)
    const { uid } = statSync(root)
    const isOpen = (each: string): boolean =>
      !othersWrite(each, uid) && !othersWrite(join(each, 'node_modules'), uid)
    return new Reach(root, foldersAbove(root).filter(isOpen))
  }

  /** The node_modules folders for the model's files, nearest first. */
  get modules(): string[] {
    const folders = [this.root, ...(this.#open ?? [])].map((folder) => join(folder, 'node_modules'))
    return folders.filter((folder) => existsSync(folder))
  }

  /** The node_modules folders above it that are not searched, also those that may be made later. */
  get closedModules(): string[] {
    const closed = foldersAbove(this.root).filter((folder) => this.#open?.has(folder) !== true)
    return closed.map((folder) => join(folder, 'node_modules'))
  }

  /** The tsconfig.json for a file of the model. */
  tsconfig(file: string): string | undefined {
    const folders = foldersAbove(file).filter((folder) => this.#isOpen(folder))
    return folders.map((folder) => join(folder, 'tsconfig.json')).find((path) => existsSync(path))
  }

  /** The package.json that decides of which kind a file is, if another user may have written it. */
  foreignPackage(file: string): string | undefined {
    if (this.#open === undefined) return undefined
    const nearest = foldersAbove(file).find((folder) => existsSync(join(folder, 'package.json')))
    return nearest === undefined || this.#isOpen(nearest) ? undefined : join(nearest, 'package.json')
  }

  /**
   * Keeps esbuild from reading files elsewhere, which it would put into the compiled handler: it has the
   * rights of the server, and a worker may have fewer.
   * @param outside what such a file becomes; default: an error
   */
  plugin(outside = notInModel): Plugin {
    return {
      name: 'reach',
      setup: (build) => {
        build.onLoad({ filter: /.*/, namespace: 'file' }, (args) =>
          this.#contains(realpathSync(args.path), args) ? undefined : outside(args),
        )
      },
    }
  }

  /** A module that the user's own folder imports may be elsewhere, but not where another user can write. */
  #contains(file: string, args: OnLoadArgs): boolean {
    if (file.startsWith(this.root + sep)) return true
    if (!isScript(file) || Object.keys(args.with).length > 0) return false
    const above = foldersAbove(this.root)
    const common = foldersAbove(file).find((folder) => above.includes(folder))
    return common !== undefined && this.#open?.has(common) === true
  }

  #isOpen(folder: string): boolean {
    return folder === this.root || folder.startsWith(this.root + sep) || this.#open?.has(folder) === true
  }
}

function notInModel({ path }: OnLoadArgs): OnLoadResult {
  return { errors: [{ text: `${path} is not in the model` }] }
}

/** The folders that contain a path, nearest first. */
export function foldersAbove(path: string): string[] {
  const found = [dirname(path)]
  while (dirname(found.at(-1)!) !== found.at(-1)) found.push(dirname(found.at(-1)!))
  return found
}

/**
 * Whether a user can write in the folder who is neither root, nor the server's user, nor the model's owner. A
 * group with the id of one of these users has no other member.
 */
function othersWrite(folder: string, owner: number): boolean {
  const stats = statSync(folder, { throwIfNoEntry: false })
  if (stats === undefined || process.getuid === undefined) return false
  const trusted = [0, process.getuid(), owner]
  const byGroup = (stats.mode & 0o020) !== 0 && !trusted.includes(stats.gid)
  return !trusted.includes(stats.uid) || (stats.mode & 0o002) !== 0 || byGroup
}

import { existsSync, lstatSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { join, isAbsolute } from 'node:path'
import { homedir } from 'node:os'

/** Node.js 22.8 and newer (Node.js docs, "Module compile cache"). */
interface CompileCache {
  readonly enableCompileCache?: (folder: string) => unknown
}

/** Rights of others: to write, and any. */
const WRITE = 0o022
const ANY = 0o077

/**
 * Keeps the compiled code of this command in the user's cache, where Node.js can. Without a private folder
 * for it, the command runs as without a cache. A user's own NODE_COMPILE_CACHE stays.
 */
export function keepCompiledCode(
  env: NodeJS.ProcessEnv = process.env,
  { enableCompileCache }: CompileCache = nodeModule as CompileCache,
): void {
  if (enableCompileCache === undefined || env['NODE_COMPILE_CACHE'] !== undefined) return
  const folder = privateFolder(env)
  if (folder !== undefined) enableCompileCache(folder)
}

/** V8 runs what it finds there, so nobody else may write it, nor put a link in its place. */
function privateFolder(env: NodeJS.ProcessEnv): string | undefined {
  const uid = process.geteuid?.()
  if (uid === undefined) return undefined // these rights do not exist on Windows
  try {
    const home = cacheHome(env)
    const own = ownCache(env)
    const folder = join(own, 'compiled')
    for (const path of [home, own, folder]) if (!existsSync(path)) mkdirSync(path, { mode: 0o700 })
    const isOwn = (path: string, forbidden: number): boolean => {
      const found = lstatSync(path)
      return found.isDirectory() && found.uid === uid && (found.mode & forbidden) === 0
    }
    return isOwn(own, WRITE) && isOwn(folder, ANY) ? folder : undefined
  } catch {
    return undefined
  }
}

/** The user's cache. As the XDG Base Directory Specification says: a relative path is ignored. */
function cacheHome(env: NodeJS.ProcessEnv): string {
  const own = env['XDG_CACHE_HOME'] ?? ''
  return isAbsolute(own) ? own : join(homedir(), '.cache')
}

/** This program's part of the user's cache. */
export function ownCache(env: NodeJS.ProcessEnv): string {
  return join(cacheHome(env), 'torchserve-ts')
}

import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/** The user's cache. As the XDG Base Directory Specification says: a relative path is ignored. */
export function cacheHome(env: NodeJS.ProcessEnv): string {
  const own = env['XDG_CACHE_HOME'] ?? ''
  return isAbsolute(own) ? own : join(homedir(), '.cache')
}

/** This program's part of the user's cache. */
export function ownCache(env: NodeJS.ProcessEnv): string {
  return join(cacheHome(env), 'torchserve-ts')
}

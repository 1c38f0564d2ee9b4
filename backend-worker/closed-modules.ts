import Module, { register } from 'node:module'
import { sep } from 'node:path'
import { pathToFileURL } from 'node:url'

/** Node passes this to its hooks for each look-up. */
interface LookUp {
  readonly conditions: readonly string[]
  readonly parentURL?: string
}

interface Hooks {
  resolve(
    specifier: string,
    context: LookUp,
    next: (specifier: string, context: LookUp) => { url: string },
  ): { url: string }
}

/** Node 22.15 and later. */
const { registerHooks } = Module as { registerHooks?: (hooks: Hooks) => void }
/** As `require` of Node 20 asks it, which hooks do not reach. */
const commonJs = Module as unknown as { _nodeModulePaths(from: string): string[] }

/** Source of a hook for Node 20, which runs it in a thread of its own. */
const THREAD = `
let closed
export const initialize = (folders) => void (closed = folders)
export async function resolve(specifier, context, next) {
  return (${notFrom.toString()})(closed, specifier, context, await next(specifier, context))
}`

/**
 * Node searches for packages in every folder above a module. From here on it finds none in these.
 * @param folders absolute paths that end with node_modules
 */
export function closeModules(folders: readonly string[]): void {
  if (folders.length === 0) return
  const closed = folders.map((folder) => pathToFileURL(folder + sep).href)
  if (registerHooks !== undefined) {
    registerHooks({
      resolve: (specifier, context, next) => notFrom(closed, specifier, context, next(specifier, context)),
    })
    return
  }
  register(`data:text/javascript,${encodeURIComponent(THREAD)}`, { data: closed })
  const searched = commonJs._nodeModulePaths
  commonJs._nodeModulePaths = (from) => searched(from).filter((folder) => !folders.includes(folder))
}

/** As if it had not been found. Refers to nothing outside, because its source also runs in the thread. */
function notFrom<Found extends { url: string }>(
  closed: readonly string[],
  specifier: string,
  { conditions, parentURL }: LookUp,
  found: Found,
): Found {
  if (!closed.some((folder) => found.url.startsWith(folder))) return found
  const code = conditions.includes('require') ? 'MODULE_NOT_FOUND' : 'ERR_MODULE_NOT_FOUND'
  const error: NodeJS.ErrnoException = new Error(
    `Cannot find package '${specifier}' imported from ${parentURL}`,
  )
  error.code = code
  throw error
}

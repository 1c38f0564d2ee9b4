import { accessSync, constants, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Settings } from '../../config/settings.ts'
import type { SandboxSettings } from '../../models/sandbox-settings.ts'
import { isInside } from './open-places.ts'
import { realOr, secretPlaces } from './places.ts'

const NO_RIGHT = 'their user must have the right to; change its owner or mode'

/**
 * What keeps workers from writing where they were allowed to, one sentence for each place. Handlers would
 * only see that the system refuses it.
 */
export function writeProblems(settings: Settings, { mode, write }: SandboxSettings): string[] {
  if (mode === 'off') return []
  const secret = secretPlaces(settings)
  return [...new Set(write)].flatMap((path) => {
    const problem = writeProblem(path, secret)
    return problem === undefined ? [] : [`Sandbox: workers cannot write to ${path}: ${problem}`]
  })
}

function writeProblem(path: string, secret: readonly string[]): string | undefined {
  const place = realOr(path)
  const own = secret.find((each) => isInside(each, place))
  if (own !== undefined)
    return `it has files of the server (${own}), so they get only what else was in it when they started; name a folder of their own, such as ${join(place, 'cache')}`
  try {
    return mayWrite(place) ? undefined : NO_RIGHT
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return 'it must exist when they start; make it, or correct the path'
    return code === 'EACCES' ? NO_RIGHT : `${message}; name another folder`
  }
}

/**
 * As the system decides for a worker, which has no capabilities: as root it is only the owner of its files.
 * @throws the system's error
 */
function mayWrite(place: string): boolean {
  const stats = statSync(place)
  const wanted = constants.W_OK | (stats.isDirectory() ? constants.X_OK : 0)
  accessSync(place, wanted)
  if (process.getuid?.() !== 0) return true
  const shift = stats.uid === 0 ? 6 : process.getgroups!().includes(stats.gid) ? 3 : 0
  return ((stats.mode >> shift) & wanted) === wanted
}

import { ServeError } from '../../common/errors.ts'
import type { Principal } from '../auth/principal.ts'

const SUFFIX = /\.(?:mar|model|tgz|tar\.gz|war)$/i

/**
 * A caller may register and upload only archives that are called as what it may use. Under a name of its own
 * it could otherwise run any archive of the store, and learn which there are.
 * @param url as in a register request: a name in the store, a path, or a URL
 * @param what which archive it is, for the message
 * @throws ServeError INVALID_ARGUMENT, whether the archive is there or not
 */
export function checkArchive(url: string, principal: Principal, what = 'that the url names'): void {
  if (namesOf(url).every((name) => principal.sees(name))) return
  throw new ServeError('INVALID_ARGUMENT', `This key does not allow the archive ${what}`)
}

/**
 * The names that a caller must be allowed. A path counts as a whole too: an archive's name says nothing of
 * the folder that it is in.
 */
function namesOf(url: string): string[] {
  if (/^https?:/i.test(url)) return [stemOf(lastOf(URL.canParse(url) ? new URL(url).pathname : ''))]
  const last = lastOf(url.replaceAll('\\', '/').replace(/\/+$/, ''))
  return last === url ? [stemOf(url)] : [url, stemOf(last)]
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1)
}

function stemOf(name: string): string {
  return name.replace(SUFFIX, '')
}

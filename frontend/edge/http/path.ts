import { ServeError } from '../../../common/errors.ts'

/** A request target, taken apart as TorchServe does: decoded first, then split; slashes at the end do not count. */
export interface RequestPath {
  /** `/predictions/m/` gives `['predictions', 'm']`. */
  segments: string[]
  /** What stands after the `?`; empty without one. */
  query: string
}

/** @throws ServeError INVALID_ARGUMENT when a percent sign is not followed by what it should be */
export function parseTarget(url: string): RequestPath {
  const target = url.charCodeAt(0) === 0x2f ? url : originForm(url)
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  const segments = decodePath(path).split('/')
  segments.shift()
  while (segments.length > 0 && segments[segments.length - 1] === '') segments.pop()
  return { segments, query: mark === -1 ? '' : target.slice(mark + 1) }
}

function decodePath(path: string): string {
  if (!path.includes('%')) return path
  try {
    return decodeURIComponent(path)
  } catch (cause) {
    throw new ServeError('INVALID_ARGUMENT', 'The path is not valid percent-encoding.', { cause })
  }
}

/** Proxies may send the whole URL. */
function originForm(url: string): string {
  const slash = /^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i.exec(url)
  const rest = slash === null ? url : url.slice(slash[0].length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

import { ServeError } from '../../../common/errors.ts'

/** A request target, parsed as in TorchServe: first decoded, then split. Slashes at the end are ignored. */
export interface Target {
  /** `/predictions/m/` gives `['predictions', 'm']`. */
  readonly segments: readonly string[]
  /** The query after the `?`; empty if there is none. */
  readonly query: string
  /** The host and port of a target that is a whole URL; undefined: it is none. */
  readonly authority?: string | undefined
  /** INVALID_ARGUMENT if the path is not valid percent-encoding; there are no segments then. */
  readonly error?: ServeError
}

/** Recently parsed targets, because clients repeat the same few. */
const seen = new Map<string, Target>()
const MAX_SEEN = 500
const MAX_SEEN_LENGTH = 256

/** Parses a request target. Equal targets share one object. */
export function targetOf(url: string): Target {
  const known = seen.get(url)
  if (known !== undefined) return known
  const target = parse(url)
  if (seen.size >= MAX_SEEN) seen.clear()
  if (url.length < MAX_SEEN_LENGTH) seen.set(url, target)
  return target
}

function parse(url: string): Target {
  const [target, authority] = url.charCodeAt(0) === 0x2f ? [url] : originForm(url)
  const mark = target.indexOf('?')
  const query = mark === -1 ? '' : target.slice(mark + 1)
  const rest = authority === undefined ? { query } : { query, authority }
  try {
    return { segments: segmentsOf(mark === -1 ? target : target.slice(0, mark)), ...rest }
  } catch (cause) {
    const error = new ServeError('INVALID_ARGUMENT', 'The path is not valid percent-encoding.', { cause })
    return { segments: [], ...rest, error }
  }
}

/** @throws URIError when a percent sign is not followed by two hex digits */
function segmentsOf(path: string): string[] {
  const decoded = path.includes('%') ? decodeURIComponent(path) : path
  const segments = decoded.split('/')
  segments.shift()
  while (segments.length > 0 && segments[segments.length - 1] === '') segments.pop()
  return segments
}

/** Proxies may send the whole URL: path and query, and the authority before them. */
function originForm(url: string): [target: string, authority?: string] {
  const [before = '', authority] = /^[a-z][a-z0-9+.-]*:\/\/([^/?]*)/i.exec(url) ?? []
  const rest = url.slice(before.length)
  return [rest.startsWith('/') ? rest : `/${rest}`, authority]
}

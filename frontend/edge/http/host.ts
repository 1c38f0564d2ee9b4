import { isIP, isIPv6 } from 'node:net'

/** The host that a request or a web page names. */
export interface Host {
  /** In lower case, without port, brackets and final dot. */
  readonly name: string
  /** `other`: RFC 3986 allows it, but neither a domain name nor an address looks like that. */
  readonly kind: 'address' | 'domain' | 'other'
}

/** uri-host [":" port] (RFC 9110, 7.2), with a registered name of RFC 3986, 3.2.2. */
const SHAPE = /^(?:\[([0-9a-f:.]+)\]|((?:[\w.~!$&'()*+,;=-]|%[0-9a-f]{2})*))(?::\d{0,5})?$/i
/** Labels that may be part of names in DNS; with `_`, which container names have. */
const DOMAIN = /^[\w-]+(?:\.[\w-]+)*$/
const MAX_LENGTH = 300

/** The host of a `Host` value, or of the authority in a URL without user data; undefined: it is none. */
export function parseHost(text: string): Host | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const [, address, named] = SHAPE.exec(text) ?? []
  if (address !== undefined)
    return isIPv6(address) ? { name: address.toLowerCase(), kind: 'address' } : undefined
  if (named === undefined) return undefined
  const name = named.toLowerCase().replace(/\.$/, '')
  if (isIP(name) > 0) return { name, kind: 'address' }
  return { name, kind: DOMAIN.test(name) ? 'domain' : 'other' }
}

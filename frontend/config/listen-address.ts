import { isIPv6 } from 'node:net'

/** Address of a REST listener. IPv6 hosts have no brackets; port 0 takes any free port. */
export type ListenAddress =
  | { readonly kind: 'tcp'; readonly tls: boolean; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }

/** The path must fit the kernel's sockaddr_un: 108 bytes on Linux, 104 on macOS, with a final zero. */
const MAX_UNIX_PATH_BYTES = 103
const MAX_PORT = 65535

const URL_SHAPE = /^(https?):\/\/(\[[^\]]+\]|[^:/[\]]+)(?::(\d{1,5}))?\/?$/i
const HOST_NAME = /^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$/

/**
 * Parses `http://host[:port]`, `https://host[:port]` or `unix:/path`; IPv6 hosts stand in brackets.
 * Returns undefined for any other text.
 */
export function parseListenAddress(
  text: string,
  defaultPorts: { http: number; https: number },
): ListenAddress | undefined {
  if (text.startsWith('unix:')) return unixAddress(text.slice('unix:'.length))
  const parts = URL_SHAPE.exec(text)
  if (parts === null) return undefined
  const tls = parts[1]!.toLowerCase() === 'https'
  const host = parseHost(parts[2]!)
  const port =
    parts[3] === undefined ? (tls ? defaultPorts.https : defaultPorts.http) : Number.parseInt(parts[3], 10)
  return host === undefined || port > MAX_PORT ? undefined : { kind: 'tcp', tls, host, port }
}

/** A host name, an IPv4 address, or an IPv6 address; removes the brackets of the latter. */
export function parseHost(text: string): string | undefined {
  const bare = text.startsWith('[') && text.endsWith(']') ? text.slice(1, -1) : text
  if (isIPv6(bare)) return bare
  return bare === text && HOST_NAME.test(text) ? text : undefined
}

function unixAddress(text: string): ListenAddress | undefined {
  const path = text.replace(/^\/\/(?=\/)/, '')
  if (!path.startsWith('/') || path.includes('\0')) return undefined
  return Buffer.byteLength(path) > MAX_UNIX_PATH_BYTES ? undefined : { kind: 'unix', path }
}

/** The address as a user writes it. `port` replaces a configured port of 0. */
export function formatListenAddress(address: ListenAddress, port?: number): string {
  if (address.kind === 'unix') return `unix:${address.path}`
  return `${address.tls ? 'https' : 'http'}://${hostAndPort(address.host, port ?? address.port)}`
}

/** The inverse of `parseHost`, with a port: IPv6 addresses get their brackets. */
export function hostAndPort(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`
}

/** Why the system refuses an address, by its error code. */
export const LISTEN_FAILURES: ReadonlyMap<string, string> = new Map([
  ['EADDRINUSE', 'the address is already in use'],
  ['EACCES', 'permission denied'],
  ['EADDRNOTAVAIL', 'this machine does not have that address'],
  ['ENOTFOUND', 'the host name is unknown'],
  ['ENOENT', 'the folder does not exist'],
])

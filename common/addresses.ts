import { BlockList, isIP, isIPv6 } from 'node:net'

/** A listener for IPv6 names clients of IPv4 `::ffff:192.0.2.1`; other addresses stay as they are. */
export function unmapped(address: string): string {
  const isMapped = address.startsWith('::ffff:') && address.includes('.')
  return isMapped ? address.slice('::ffff:'.length) : address
}

/**
 * Whoever has an IPv6 address has the 2^64 of its network; IPv4 addresses stand for themselves, mapped ones
 * too.
 */
export function groupOf(address: string): string {
  const plain = unmapped(address)
  if (!isIPv6(plain)) return plain
  const [head = '', tail] = plain.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length
  return [...groups, ...new Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':')
}

const LOOPBACK = new BlockList()
LOOPBACK.addSubnet('127.0.0.0', 8, 'ipv4')
LOOPBACK.addAddress('::1', 'ipv6')

/** Whether only this machine can reach the address, an IP address without brackets. */
export function isLoopback(address: string): boolean {
  const [bare = ''] = address.split('%')
  return LOOPBACK.check(bare, isIPv6(bare) ? 'ipv6' : 'ipv4')
}

/** Whether a host name stands for loopback wherever it is asked (RFC 6761). */
export function isLocalhost(name: string): boolean {
  return name === 'localhost' || name.endsWith('.localhost')
}

/** Whether the host of a URL stands for loopback: an address, also in brackets, or a name. */
export function isLoopbackHost(host: string): boolean {
  const name = host.replace(/^\[|\]$/g, '')
  return isIP(name) > 0 ? isLoopback(name) : isLocalhost(name)
}

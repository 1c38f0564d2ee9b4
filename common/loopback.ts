import { BlockList, isIP, isIPv6 } from 'node:net'

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

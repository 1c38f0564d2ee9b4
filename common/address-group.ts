import { isIPv6 } from 'node:net'

/**
 * Whoever has an IPv6 address has the 2^64 of its network; IPv4 addresses stand for themselves, mapped ones
 * too.
 */
export function groupOf(address: string): string {
  if (!isIPv6(address)) return address
  if (address.startsWith('::ffff:') && address.includes('.')) return address.slice('::ffff:'.length)
  const [head = '', tail] = address.split('::')
  const groups = head === '' ? [] : head.split(':')
  const rest = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? 0 : 8 - groups.length - rest.length
  return [...groups, ...new Array<string>(zeros).fill('0'), ...rest].slice(0, 4).join(':')
}

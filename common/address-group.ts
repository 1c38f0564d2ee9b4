import { isIPv6 } from 'node:net'

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

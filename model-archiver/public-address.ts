import { BlockList, isIPv4 } from 'node:net'

/**
 * Ranges that are not the public internet: loopback, private networks, and addresses that embed IPv4 ones.
 */
const V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
].concat(['192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/4', '240.0.0.0/4'])
const V6 = [
  '::/96',
  '::ffff:0:0/96',
  '64:ff9b::/32',
  '100::/64',
  '2002::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
]

const hiddenV4 = blockList(V4, 'ipv4')
const hiddenV6 = blockList(V6, 'ipv6')

function blockList(subnets: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList()
  for (const subnet of subnets) {
    const [network, prefix] = subnet.split('/')
    list.addSubnet(network!, Number(prefix), family)
  }
  return list
}

/** Whether the server may connect to an IP address that a client chose. */
export function isPublicAddress(address: string): boolean {
  const bare = address.replace(/%.*$/, '')
  return isIPv4(bare) ? !hiddenV4.check(bare, 'ipv4') : !hiddenV6.check(bare, 'ipv6')
}

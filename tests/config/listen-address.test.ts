import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { formatListenAddress, parseHost, parseListenAddress } from '../../frontend/config/listen-address.ts'

const PORTS = { http: 80, https: 443 }
const parse = (text: string) => parseListenAddress(text, PORTS)

describe('a listen address', () => {
  test.each([
    ['http://127.0.0.1:8080', { kind: 'tcp', tls: false, host: '127.0.0.1', port: 8080 }],
    ['HTTP://localhost/', { kind: 'tcp', tls: false, host: 'localhost', port: 80 }],
    ['https://host', { kind: 'tcp', tls: true, host: 'host', port: 443 }],
    ['http://[::1]:0', { kind: 'tcp', tls: false, host: '::1', port: 0 }],
    ['unix:/tmp/a.sock', { kind: 'unix', path: '/tmp/a.sock' }],
    ['unix:///tmp/a.sock', { kind: 'unix', path: '/tmp/a.sock' }],
  ])('%s is read', (text, expected) => {
    expect(parse(text)).toEqual(expected)
  })

  test.each([
    'http://',
    'http://:80',
    'ftp://host',
    'http://host:65536',
    'http://host:x',
    'http://host/path',
    'http://user@host',
    'http://::1:80',
    'http://[host]:80',
    'unix:tmp/a.sock',
    `unix:/${'x'.repeat(200)}`,
  ])('%s is refused', (text) => {
    expect(parse(text)).toBeUndefined()
  })

  test('what is written is read back', () => {
    const tcp = fc.record({
      kind: fc.constant('tcp' as const),
      tls: fc.boolean(),
      host: fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain()),
      port: fc.integer({ min: 0, max: 65535 }),
    })
    fc.assert(fc.property(tcp, (address) => expect(parse(formatListenAddress(address))).toEqual(address)))
  })
})

test('a host may be an IPv6 address in brackets', () => {
  expect([parseHost('[::1]'), parseHost('::1'), parseHost('[a]'), parseHost('-a')]).toEqual([
    '::1',
    '::1',
    undefined,
    undefined,
  ])
})

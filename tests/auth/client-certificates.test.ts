import type { PeerCertificate } from 'node:tls'
import { afterEach, expect, jest, test } from '@jest/globals'
import type { Client } from '../../frontend/auth/gatekeeper.ts'
import { ClientCertificates, type NamedKeys } from '../../frontend/auth/named-keys.ts'
import type { Principal } from '../../frontend/auth/principal.ts'

const BATCH = { name: 'batch' } as unknown as Principal
const certificates = new ClientCertificates({
  findCertificate: (marks: readonly string[]) => (marks.includes('cn batch') ? BATCH : undefined),
} as unknown as NamedKeys)

/** A client whose certificate TLS has accepted. */
function client(validTo: string): Client {
  const certificate = { fingerprint256: 'AA', subject: { CN: 'batch' }, valid_to: validTo }
  return { authorized: true, getPeerCertificate: () => certificate as unknown as PeerCertificate }
}

afterEach(() => {
  jest.useRealTimers()
})

test('a certificate that ends while its connection goes on counts until then', () => {
  jest.useFakeTimers({ now: Date.parse('2030-01-01T11:59:59Z') })
  const caller = client('Jan  1 12:00:00 2030 GMT')
  expect(certificates.find(caller)).toBe(BATCH)
  jest.setSystemTime(Date.parse('2030-01-01T12:00:00Z'))
  expect(certificates.find(caller)).toBeUndefined()
})

test.each(['Jan  1 12:00:00 2020 GMT', 'never', ''])(
  'a resumed session with a certificate that was valid until "%s" is nobody',
  (validTo) => {
    expect(certificates.find(client(validTo))).toBeUndefined()
  },
)

import { expect, test } from '@jest/globals'
import { configError, settingsOf } from './support.ts'

/** Keys of features that are not there, beside those that confined workers (worker-wrapper.test.ts). */

test.each(['require_signed_archives=true', 'archive_signers_file=/etc/signers'])(
  '%s, which kept archives out, is refused, and pins are named',
  (line) => {
    const why = 'pin the SHA-256 of archives in models or load_models (docs/trusted-archives.md)'
    expect(configError(() => settingsOf({ file: line }))).toBe(
      `config.properties:1: ${line} is not supported: ${why}`,
    )
    const [key, value] = line.split('=') as [string, string]
    const env = { TS_ENABLE_ENVVARS_CONFIG: 'true', [`TS_${key.toUpperCase()}`]: value }
    expect(configError(() => settingsOf({ env }))).toContain(why)
  },
)

test.each([
  ['require_signed_archives=false', 'signatures of archives are not checked'],
  ['enable_archive_upload=true', 'copy archives into the model store, or register them by URL'],
  [
    'grpc_max_connections=10',
    'max_connections limits all connections, and one address has at most half of them',
  ],
  ['grpc_message_timeout=30', 'the limit is fixed (docs/grpc.md)'],
  ['address_requests_per_second=0', 'the server has no limits by address'],
  [
    'jwt_algorithms=EdDSA,RS256,RS384,RS512,PS256,PS384,PS512,ES256,ES384,ES512',
    'all these algorithms are accepted',
  ],
  ['enable_archive_upload=false', 'copy archives into the model store, or register them by URL'],
])('%s has no effect, and what takes its place is told', (line, why) => {
  const { warnings } = settingsOf({ file: line })
  expect(warnings).toEqual([`config.properties:1: ${line.split('=')[0]} has no effect: ${why}`])
})

test('a limit by address is refused, and what takes its place is told', () => {
  expect(configError(() => settingsOf({ file: 'address_concurrent_streams=4' }))).toBe(
    'config.properties:1: address_concurrent_streams=4 is not supported: limit clients by address in a proxy, ' +
      'and keys with the key_... limits (docs/security.md)',
  )
})

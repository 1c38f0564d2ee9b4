import { chmodSync, readdirSync, writeFileSync } from 'node:fs'
import { X509Certificate } from 'node:crypto'
import { join } from 'node:path'
import { createSecureContext } from 'node:tls'
import { describe, expect, test } from '@jest/globals'
import { grpcCredentials, restCredentials, type TlsSettings } from '../../frontend/tls/credentials.ts'
import { ServeError } from '../../common/errors.ts'
import { tempDir } from '../support/temp.ts'
import { CERT, CERT_FILE, KEY, KEY_FILE, KEYSTORE_FILE } from '../support/tls/files.ts'

const NOTHING: TlsSettings = {
  keystore: undefined,
  keystorePass: 'changeit',
  keystoreType: 'pkcs12',
  certificateFile: undefined,
  privateKeyFile: undefined,
  enableGrpcSsl: true,
  tlsCiphers: 'ECDHE+AESGCM',
  tempDir: '/nonexistent',
}
const PEM = { certificateFile: CERT_FILE, privateKeyFile: KEY_FILE }

function rest(settings: Partial<TlsSettings>, warnings: string[] = []) {
  return restCredentials({ ...NOTHING, ...settings }, (message) => warnings.push(message))
}

/** The one line that it fails with. */
async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  expect(error).toBeInstanceOf(ServeError)
  const { code, message } = error as ServeError
  expect(code).toBe('CONFIG')
  expect(message.split('\n')).toHaveLength(1)
  return message
}

function fileWith(bytes: Buffer | string): string {
  const path = join(tempDir(), 'file')
  writeFileSync(path, bytes)
  return path
}

describe('key and certificate of https', () => {
  test('come from the PEM files', async () => {
    expect(await rest(PEM)).toEqual({ key: KEY, cert: CERT, ciphers: NOTHING.tlsCiphers })
  })

  test('come from the keystore first', async () => {
    const credentials = await rest({ ...PEM, keystore: KEYSTORE_FILE, keystorePass: 'secret' })
    expect(Object.keys(credentials)).toEqual(['pfx', 'passphrase', 'ciphers'])
    expect(() => createSecureContext(credentials)).not.toThrow()
  })

  test('a keystore that its password does not open is one line', async () => {
    expect(await refusal(rest({ keystore: KEYSTORE_FILE }))).toMatch(/^keystore .* cannot be used for TLS: /)
  })

  test.each([
    ['the type', { keystore: KEYSTORE_FILE, keystoreType: 'jks' as const }],
    ['the file', { keystore: fileWith(Buffer.from('feedfeed00000002', 'hex')) }],
  ])('a JKS keystore is refused with the command that converts it: seen by %s', async (_how, settings) => {
    expect(await refusal(rest(settings))).toMatch(/keytool -importkeystore .* -deststoretype PKCS12$/)
  })

  test.each([
    [{ certificateFile: CERT_FILE }, 'certificate_file requires private_key_file'],
    [{ privateKeyFile: KEY_FILE }, 'private_key_file requires certificate_file'],
    [{ ...PEM, privateKeyFile: '/nonexistent/key' }, 'private_key_file cannot be read: ENOENT'],
    [{ ...PEM, certificateFile: KEY_FILE }, 'cannot be used for TLS'],
    [{ keystore: '/nonexistent/store' }, 'keystore cannot be read: ENOENT'],
  ])('%j is refused', async (settings, message) => {
    expect(await refusal(rest(settings))).toContain(message)
  })
})

describe('https without any key', () => {
  const PATH = process.env['PATH']

  test('makes a certificate with openssl, warns, and leaves no key behind', async () => {
    const folder = tempDir()
    const bin = fakeOpenssl()
    const warnings: string[] = []
    process.env['PATH'] = `${bin}:${PATH}`
    try {
      const made = await rest({ tempDir: folder }, warnings)
      expect(made).toEqual({ key: KEY, cert: CERT, ciphers: NOTHING.tlsCiphers })
    } finally {
      process.env['PATH'] = PATH
    }
    expect(readdirSync(folder)).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('self-signed')])
  })

  test('with the real command, where there is one: a certificate for localhost', async () => {
    const made = await rest({ tempDir: tempDir() }).catch((error: unknown) => error)
    if (made instanceof ServeError) return expect(made.message).toContain('openssl req -x509')
    expect(new X509Certificate((made as { cert: Buffer }).cert).checkHost('localhost')).toBe('localhost')
  })

  test('says which keys to set and how to make a pair where openssl is missing', async () => {
    process.env['PATH'] = tempDir()
    try {
      expect(await refusal(rest({ tempDir: tempDir() }))).toMatch(
        /certificate_file and private_key_file, .* openssl req -x509 .* -out cert\.pem$/,
      )
    } finally {
      process.env['PATH'] = PATH
    }
  })

  /** A command of that name that puts the tests' pair where it is told to. */
  function fakeOpenssl(): string {
    const folder = tempDir()
    const script = `#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in -keyout) cp '${KEY_FILE}' "$2" ;; -out) cp '${CERT_FILE}' "$2" ;; esac
  shift
done
`
    writeFileSync(join(folder, 'openssl'), script)
    chmodSync(join(folder, 'openssl'), 0o755)
    return folder
  }
})

describe('key and certificate of gRPC', () => {
  test('are the PEM files, if enable_grpc_ssl is on', async () => {
    expect(await grpcCredentials({ ...NOTHING, ...PEM }, () => undefined)).toEqual({
      ...{ key: KEY, cert: CERT, ciphers: NOTHING.tlsCiphers },
    })
    expect(
      await grpcCredentials({ ...NOTHING, ...PEM, enableGrpcSsl: false }, () => undefined),
    ).toBeUndefined()
  })

  test('never come from the keystore', async () => {
    const keystore = { keystore: KEYSTORE_FILE, keystorePass: 'secret' }
    expect(await refusal(grpcCredentials({ ...NOTHING, ...keystore }, () => undefined))).toBe(
      'enable_grpc_ssl=true requires certificate_file and private_key_file',
    )
  })
})

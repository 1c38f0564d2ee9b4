import { createSecureContext } from 'node:tls'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { readKeyFile, warnIfReadable, type PemPair } from './key-files.ts'
import { readKeystore, type KeystoreSettings } from './keystore.ts'
import { selfSigned } from './self-signed.ts'

/** What an https listener is given: PEM, or a PKCS12 file with its password. */
export type TlsCredentials = (PemPair | { readonly pfx: Buffer; readonly passphrase: string }) & WithCiphers

/** OpenSSL's list of the suites that are offered. */
interface WithCiphers {
  readonly ciphers: string
}

export type TlsSettings = KeystoreSettings &
  Pick<Settings, 'certificateFile' | 'privateKeyFile' | 'tlsCiphers' | 'enableGrpcSsl' | 'tempDir'>

/**
 * Key and certificate of the https listeners (spec 5.1): the keystore, else the two PEM files, else a certificate that is made now and
 * that nobody trusts; `warn` hears of that. @throws ServeError CONFIG, one line
 */
export async function restCredentials(
  settings: TlsSettings,
  warn: (message: string) => void,
): Promise<TlsCredentials> {
  const stored = await readKeystore(settings)
  if (stored !== undefined) {
    await warnIfReadable('keystore', settings.keystore!, warn)
    return usable({ ...stored, ciphers: settings.tlsCiphers }, `keystore ${settings.keystore}`)
  }
  const files = await pemFiles(settings, warn)
  if (files !== undefined) return files
  warn('https with a self-signed certificate, made for this start: set certificate_file and private_key_file')
  return { ...(await selfSigned(settings.tempDir)), ciphers: settings.tlsCiphers }
}

/**
 * Key and certificate of the gRPC listeners; they never use the keystore (spec 3.4). Undefined: enable_grpc_ssl is off.
 * @throws ServeError CONFIG, one line
 */
export async function grpcCredentials(
  settings: TlsSettings,
  warn: (message: string) => void,
): Promise<(PemPair & WithCiphers) | undefined> {
  if (!settings.enableGrpcSsl) return undefined
  const files = await pemFiles(settings, warn)
  if (files !== undefined) return files
  throw new ServeError('CONFIG', 'enable_grpc_ssl=true needs certificate_file and private_key_file')
}

async function pemFiles(
  { certificateFile, privateKeyFile, tlsCiphers: ciphers }: TlsSettings,
  warn: (message: string) => void,
): Promise<(PemPair & WithCiphers) | undefined> {
  if (certificateFile === undefined && privateKeyFile === undefined) return undefined
  if (certificateFile === undefined || privateKeyFile === undefined) {
    const [given, missing] =
      certificateFile === undefined
        ? ['private_key_file', 'certificate_file']
        : ['certificate_file', 'private_key_file']
    throw new ServeError('CONFIG', `${given} is set without ${missing}: TLS needs both`)
  }
  const key = await readKeyFile('private_key_file', privateKeyFile)
  const cert = await readKeyFile('certificate_file', certificateFile)
  await warnIfReadable('private_key_file', privateKeyFile, warn)
  return usable(
    { key, cert, ciphers },
    `certificate_file ${certificateFile} with private_key_file ${privateKeyFile}`,
  )
}

/** OpenSSL's word on it now, not at the first connection. */
function usable<T extends TlsCredentials>(credentials: T, what: string): T {
  try {
    createSecureContext(credentials)
    return credentials
  } catch (cause) {
    throw new ServeError('CONFIG', `${what} cannot be used for TLS: ${(cause as Error).message}`, { cause })
  }
}

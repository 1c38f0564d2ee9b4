import { createSecureContext } from 'node:tls'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { readKeyFile, warnIfReadable, type PemPair } from './key-files.ts'
import { readKeystore, type KeystoreSettings } from './keystore.ts'
import { selfSigned } from './self-signed.ts'

/** Credentials of an https listener: PEM, or a PKCS12 file with its password. */
export type TlsCredentials = (PemPair | { readonly pfx: Buffer; readonly passphrase: string }) & WithCiphers

interface WithCiphers {
  /** The suites that are offered, as OpenSSL lists them. */
  readonly ciphers: string
}

export type TlsSettings = KeystoreSettings &
  Pick<Settings, 'certificateFile' | 'privateKeyFile' | 'tlsCiphers' | 'enableGrpcSsl' | 'tempDir'>

/**
 * Key and certificate of the https listeners: the keystore, else the two PEM files, else a new self-signed
 * certificate, which is reported to `warn`. See docs/tls.md.
 * @throws ServeError CONFIG, one line
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
  warn('https uses a new self-signed certificate; set certificate_file and private_key_file to use your own')
  return { ...(await selfSigned(settings.tempDir)), ciphers: settings.tlsCiphers }
}

/**
 * Key and certificate of the gRPC listeners; undefined when enable_grpc_ssl is off. The keystore is not used
 * for gRPC, as in TorchServe.
 * @throws ServeError CONFIG, one line
 */
export async function grpcCredentials(
  settings: TlsSettings,
  warn: (message: string) => void,
): Promise<(PemPair & WithCiphers) | undefined> {
  if (!settings.enableGrpcSsl) return undefined
  const files = await pemFiles(settings, warn)
  if (files !== undefined) return files
  throw new ServeError('CONFIG', 'enable_grpc_ssl=true requires certificate_file and private_key_file')
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
    throw new ServeError('CONFIG', `${given} requires ${missing}; set both`)
  }
  const key = await readKeyFile('private_key_file', privateKeyFile)
  const cert = await readKeyFile('certificate_file', certificateFile)
  await warnIfReadable('private_key_file', privateKeyFile, warn)
  return usable(
    { key, cert, ciphers },
    `certificate_file ${certificateFile} with private_key_file ${privateKeyFile}`,
  )
}

/** Lets OpenSSL check the credentials at start instead of at the first connection. */
function usable<T extends TlsCredentials>(credentials: T, what: string): T {
  try {
    createSecureContext(credentials)
    return credentials
  } catch (cause) {
    throw new ServeError('CONFIG', `${what} cannot be used for TLS: ${(cause as Error).message}`, { cause })
  }
}

import { constants, X509Certificate } from 'node:crypto'
import { createSecureContext } from 'node:tls'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import {
  readKeyFile,
  warnIfReadable,
  type PemPair,
  readKeystore,
  type KeystoreSettings,
  selfSigned,
} from './key-files.ts'

/** Credentials of an https listener: PEM, or a PKCS12 file with its password. */
export type TlsCredentials = (PemPair | { readonly pfx: Buffer; readonly passphrase: string }) & WithCiphers

interface WithCiphers {
  /** The suites that are offered, as OpenSSL lists them. */
  readonly ciphers: string
  /** CA of client certificates; absent, like the next two: none are asked for. */
  readonly ca?: Buffer
  readonly requestCert?: true
  /** Whether a client without a valid certificate is refused. */
  readonly rejectUnauthorized?: boolean
  /** Options of OpenSSL. */
  readonly secureOptions?: number
}

export type TlsSettings = KeystoreSettings &
  Pick<Settings, 'certificateFile' | 'privateKeyFile' | 'tlsCiphers' | 'enableGrpcSsl' | 'tempDir'> &
  Partial<Pick<Settings, 'tlsClientCa' | 'tlsClientAuth'>>

/**
 * Key and certificate of the https listeners: the keystore, else the two PEM files, else a new self-signed
 * certificate, which is reported to `warn`. See docs/tls.md.
 * @throws ServeError CONFIG, one line
 */
export async function restCredentials(
  settings: TlsSettings,
  warn: (message: string) => void,
): Promise<TlsCredentials> {
  return { ...(await restPair(settings, warn)), ...(await clientAuth(settings)) }
}

async function restPair(settings: TlsSettings, warn: (message: string) => void): Promise<TlsCredentials> {
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
  if (files !== undefined) return { ...files, ...(await clientAuth(settings)) }
  throw new ServeError('CONFIG', 'enable_grpc_ssl=true requires certificate_file and private_key_file')
}

/** What asks clients for a certificate. */
async function clientAuth({
  tlsClientCa,
  tlsClientAuth,
}: TlsSettings): Promise<Omit<WithCiphers, 'ciphers'>> {
  if (tlsClientCa === undefined) return {}
  const ca = await readKeyFile('tls_client_ca', tlsClientCa)
  try {
    createSecureContext({ ca: new X509Certificate(ca).toString() })
  } catch (cause) {
    const why = (cause as Error).message
    throw new ServeError('CONFIG', `tls_client_ca ${tlsClientCa} must be a PEM certificate: ${why}`, {
      cause,
    })
  }
  if (tlsClientAuth !== 'require') return { ca, requestCert: true, rejectUnauthorized: false }
  // A resumed session would pass when its certificate has ended, and could be resumed again and again.
  return { ca, requestCert: true, rejectUnauthorized: true, secureOptions: constants.SSL_OP_NO_TICKET }
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

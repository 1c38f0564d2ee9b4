import { readFile, stat, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'

/** A private key and its certificate chain, as PEM. */
export interface PemPair {
  readonly key: Buffer
  readonly cert: Buffer
}

/** Warns of a file with a private key that every user of the machine can read. */
export async function warnIfReadable(
  configKey: string,
  path: string,
  warn: (message: string) => void,
): Promise<void> {
  const { mode } = await stat(path)
  if ((mode & 0o004) !== 0)
    warn(`${configKey} ${path} can be read by every user of this machine: chmod o-r ${path}`)
}

/** Reads the file that a configuration key names. @throws ServeError CONFIG when it cannot be read */
export async function readKeyFile(configKey: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new ServeError('CONFIG', `${configKey} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

export type KeystoreSettings = Pick<Settings, 'keystore' | 'keystorePass' | 'keystoreType'>

/** The first four bytes of every JKS file. */
const JKS_MAGIC = 0xfeedfeed

/**
 * Reads the configured PKCS12 keystore; undefined when none is configured.
 * @throws ServeError CONFIG, also for a JKS file
 */
export async function readKeystore({
  keystore,
  keystorePass,
  keystoreType,
}: KeystoreSettings): Promise<{ pfx: Buffer; passphrase: string } | undefined> {
  if (keystore === undefined) return undefined
  const pfx = await readKeyFile('keystore', keystore)
  const isJks = pfx.byteLength >= 4 && pfx.readUInt32BE(0) === JKS_MAGIC
  if (isJks || keystoreType === 'jks') throw jksRefused(keystore)
  return { pfx, passphrase: keystorePass }
}

function jksRefused(keystore: string): ServeError {
  const convert = `keytool -importkeystore -srckeystore ${keystore} -destkeystore ${keystore}.p12 -deststoretype PKCS12`
  return new ServeError(
    'CONFIG',
    `keystore ${keystore}: JKS is not supported. Convert it to PKCS12: ${convert}`,
  )
}

const ARGUMENTS = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '365', '-subj', '/CN=localhost']
const ALT_NAMES = ['-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
const LIMIT_MS = 60_000

/**
 * Makes a self-signed certificate for localhost, as TorchServe does when https has neither keystore nor PEM
 * files. Uses the openssl command, because Node.js cannot make certificates. Removes the key file before it
 * resolves.
 * @throws ServeError CONFIG when openssl is missing; the message has the command to run elsewhere
 */
export async function selfSigned(tempDir: string): Promise<PemPair> {
  const folder = await mkdtemp(join(tempDir, 'torchserve-ts-tls-'))
  const keyFile = join(folder, 'key.pem')
  const certFile = join(folder, 'cert.pem')
  try {
    const files = ['-keyout', keyFile, '-out', certFile]
    await execa('openssl', [...ARGUMENTS, ...ALT_NAMES, ...files], { stdin: 'ignore', timeout: LIMIT_MS })
    return { key: await readFile(keyFile), cert: await readFile(certFile) }
  } catch (cause) {
    const command = ['openssl', ...ARGUMENTS, '-keyout key.pem -out cert.pem'].join(' ')
    throw new ServeError(
      'CONFIG',
      `https requires certificate_file and private_key_file, because openssl cannot be run here. Make them with: ${command}`,
      { cause },
    )
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

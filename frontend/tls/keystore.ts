import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import { readKeyFile } from './key-files.ts'

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

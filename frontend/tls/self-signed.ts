import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { execa } from 'execa'
import { ServeError } from '../../common/errors.ts'
import type { PemPair } from './key-files.ts'

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

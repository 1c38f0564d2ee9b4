import { readFile, stat } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'

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

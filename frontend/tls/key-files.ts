import { readFile } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'

/** A private key and its certificate chain, as PEM. */
export interface PemPair {
  readonly key: Buffer
  readonly cert: Buffer
}

/** Reads the file that a configuration key names. @throws ServeError CONFIG when it cannot be read */
export async function readKeyFile(configKey: string, path: string): Promise<Buffer> {
  try {
    return await readFile(path)
  } catch (cause) {
    throw new ServeError('CONFIG', `${configKey} cannot be read: ${(cause as Error).message}`, { cause })
  }
}

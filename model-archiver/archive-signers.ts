import { readFile, stat } from 'node:fs/promises'
import { ServeError } from '../common/errors.ts'
import { checkKey, fingerprint, SIGNATURE_NAMESPACE } from './ssh-signature.ts'

/** A key that may sign archives. */
export interface ArchiveSigner {
  /** Its name in the file; else its comment, else its fingerprint. */
  readonly name: string
  /** The public key in SSH's form. */
  readonly key: Buffer
}

const MAX_BYTES = 1024 ** 2

/** `[name [options]] ssh-ed25519 KEY [comment]` */
const LINE = /^(?:(\S+)[ \t]+(?:(\S+)[ \t]+)?)?ssh-ed25519[ \t]+([A-Za-z0-9+/]+=*)(?:[ \t]+(.*))?$/
/** The only supported option. */
const NAMESPACES = /^namespaces="?([^"]*)"?$/

/**
 * The keys of archive_signers_file: OpenSSH's allowed_signers, or public keys as ssh-keygen writes them, one
 * a line. Leaves out keys that the file allows for other namespaces only.
 * @throws ServeError CONFIG when the file cannot be read, has a line that is not supported, or has no key
 */
export async function readSigners(path: string): Promise<ArchiveSigner[]> {
  const lines = (await readText(path)).split(/\r?\n/)
  const signers = lines.flatMap((line, index) => {
    const text = line.trim()
    return text === '' || text.startsWith('#') ? [] : signersOf(text, `${path}:${index + 1}`)
  })
  if (signers.length === 0) throw unusable(path, 'it has no key for archives')
  return signers
}

async function readText(path: string): Promise<string> {
  try {
    const stats = await stat(path)
    if (!stats.isFile()) throw new Error('it must be a file')
    if (stats.size > MAX_BYTES) throw new Error(`it must have at most ${MAX_BYTES} bytes`)
    return await readFile(path, 'utf8')
  } catch (error) {
    throw unusable(path, (error as Error).message)
  }
}

function signersOf(line: string, place: string): ArchiveSigner[] {
  const [, name, options, base64, comment] = LINE.exec(line) ?? []
  if (base64 === undefined)
    throw unusable(place, 'a line must be NAME ssh-ed25519 KEY; other kinds of keys are not supported')
  const allowed = options === undefined ? undefined : NAMESPACES.exec(options)?.[1]
  if (options !== undefined && allowed === undefined)
    throw unusable(place, 'options besides namespaces="..." are not supported')
  const key = Buffer.from(base64, 'base64')
  try {
    checkKey(key)
  } catch (error) {
    throw unusable(place, (error as Error).message)
  }
  const isForArchives = allowed === undefined || allowed.split(',').includes(SIGNATURE_NAMESPACE)
  return isForArchives ? [{ name: name ?? (comment?.trim() || fingerprint(key)), key }] : []
}

function unusable(place: string, reason: string): ServeError {
  return new ServeError('CONFIG', `archive_signers_file ${place} cannot be used: ${reason}.`)
}

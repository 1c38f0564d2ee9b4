import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { execa } from 'execa'
import { mistake } from './contents.ts'
import { parseSignature, SIGNATURE_NAMESPACE } from './ssh-signature.ts'

/**
 * Signs a file with ssh-keygen, which asks for the passphrase of the key, and asks the SSH agent or a
 * security key where the private key is there.
 * @param key path of an Ed25519 key: the private one, or a public one whose private key is in the agent
 * @returns the signature as text, for FILE.sig
 * @throws ServeError INVALID_ARGUMENT when ssh-keygen is missing or refuses, or the kind of key is not
 *   supported
 */
export async function signArchive(file: string, key: string): Promise<string> {
  const isFile = (await stat(key).catch(() => undefined))?.isFile() === true
  if (!isFile) throw mistake(`--sign: file not found: ${key}`)
  const args = ['-Y', 'sign', '-n', SIGNATURE_NAMESPACE, '-f', key]
  // The passphrase is read from the terminal, not from the standard input.
  const { stdout, stderr, failed, code } = await execa('ssh-keygen', args, {
    input: createReadStream(file),
    reject: false,
    stripFinalNewline: false,
  })
  if (code === 'ENOENT') throw mistake('--sign needs ssh-keygen; install OpenSSH.')
  if (failed) throw mistake(`--sign: ssh-keygen cannot sign with ${key}: ${stderr.trim()}`)
  try {
    parseSignature(stdout)
  } catch (error) {
    throw mistake(`--sign: the key ${key} cannot be used: ${(error as Error).message}.`)
  }
  return stdout
}

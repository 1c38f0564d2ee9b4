import { createHash, createPublicKey, verify } from 'node:crypto'
import type { HashName } from './hashed-file.ts'

/**
 * Signatures of `ssh-keygen -Y sign`, in the format of OpenSSH's PROTOCOL.sshsig, with Ed25519 keys. OpenSSH
 * makes them; Node's crypto (OpenSSL) checks them, so that a server needs no ssh-keygen and no network.
 */

/** Only a signature for this purpose counts: not one that the same key made for Git or for a mail. */
export const SIGNATURE_NAMESPACE = 'torchserve-ts-archive'

/** The only supported kind of key. */
export const KEY_KIND = 'ssh-ed25519'

const BEGIN = '-----BEGIN SSH SIGNATURE-----'
const END = '-----END SSH SIGNATURE-----'
const MAGIC = Buffer.from('SSHSIG')
const VERSION = 1
const KEY_BYTES = 32
const SIGNATURE_BYTES = 64

export interface SshSignature {
  /** The public key in SSH's form, as a line of allowed_signers has it in Base64. */
  readonly key: Buffer
  readonly namespace: string
  readonly hash: HashName
  readonly reserved: Buffer
  /** 64 bytes of Ed25519. */
  readonly bytes: Buffer
}

/** @throws Error with a reason that completes "the signature is invalid: " */
export function parseSignature(text: string): SshSignature {
  const trimmed = text.trim()
  if (!trimmed.startsWith(BEGIN) || !trimmed.endsWith(END)) throw new Error('it is not an SSH signature')
  const wire = new Wire(Buffer.from(trimmed.slice(BEGIN.length, -END.length), 'base64'))
  if (!wire.bytes(MAGIC.length).equals(MAGIC) || wire.number() !== VERSION)
    throw new Error('its format is not supported')
  const key = wire.field()
  const namespace = wire.field().toString()
  const reserved = wire.field()
  const hash = hashName(wire.field().toString())
  const signature = new Wire(wire.field())
  wire.end()
  checkKey(key)
  checkKind(signature.field().toString())
  const bytes = signature.field()
  signature.end()
  if (bytes.length !== SIGNATURE_BYTES) throw new Error('its length is wrong')
  return { key, namespace, hash, reserved, bytes }
}

/** Whether the key made the signature for content with this digest. */
export function isGenuine(signature: SshSignature, digest: Buffer): boolean {
  const { key, namespace, hash, reserved, bytes } = signature
  const signed = [Buffer.from(namespace), reserved, Buffer.from(hash), digest].map(field)
  return verify(undefined, Buffer.concat([MAGIC, ...signed]), nodeKey(key), bytes)
}

/** As `ssh-keygen -l` shows a key: SHA256:… */
export function fingerprint(key: Buffer): string {
  return `SHA256:${createHash('sha256').update(key).digest('base64').replace(/=+$/, '')}`
}

/** @throws Error with a reason, unless it is an Ed25519 key in SSH's form */
export function checkKey(key: Buffer): void {
  const wire = new Wire(key)
  checkKind(wire.field().toString())
  if (wire.field().length !== KEY_BYTES) throw new Error('the length of its key is wrong')
  wire.end()
}

function checkKind(kind: string): void {
  if (kind === KEY_KIND) return
  // The kind comes from the file: only a known form of it is told back.
  const shown = /^[\w@.-]{1,64}$/.test(kind) ? kind : 'of this kind'
  throw new Error(`keys ${shown} are not supported; use ${KEY_KIND}`)
}

function hashName(text: string): HashName {
  if (text === 'sha256' || text === 'sha512') return text
  throw new Error('its hash must be sha256 or sha512')
}

function nodeKey(key: Buffer): ReturnType<typeof createPublicKey> {
  const x = key.subarray(-KEY_BYTES).toString('base64url')
  return createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
}

/** A length in four bytes, then the content. */
function field(content: Buffer): Buffer {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(content.length)
  return Buffer.concat([length, content])
}

/** Reads SSH's binary form. */
class Wire {
  #rest: Buffer

  constructor(bytes: Buffer) {
    this.#rest = bytes
  }

  bytes(count: number): Buffer {
    if (count > this.#rest.length) throw new Error('it ends too early')
    const part = this.#rest.subarray(0, count)
    this.#rest = this.#rest.subarray(count)
    return part
  }

  number(): number {
    return this.bytes(4).readUInt32BE()
  }

  field(): Buffer {
    return this.bytes(this.number())
  }

  end(): void {
    if (this.#rest.length > 0) throw new Error('it is too long')
  }
}

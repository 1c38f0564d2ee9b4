import { randomBytes, timingSafeEqual } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { rm, stat, writeFile } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { putInPlace } from '../../common/files.ts'
import { NOBODY, type Principal, type Scope } from './principal.ts'

export const KEY_FILE_NAME = 'key_file.json'

/** 128 bits; TorchServe's have 48. */
const KEY_BYTES = 16
/** Characters of a key: its bytes as URL-safe base64. */
const KEY_LENGTH = 22
const MS_PER_MINUTE = 60_000

interface Key {
  readonly text: string
  readonly bytes: Buffer
  /** Milliseconds since the epoch. */
  readonly expires: number
}

/** The kinds of TorchServe's keys, besides the API key. */
export type TokenKind = 'inference' | 'management'

/** A key that callers show for requests. */
interface TokenKey extends Key {
  readonly holder: TokenHolder
}

type Keys = Readonly<Record<TokenKind, TokenKey>>

/** Who has the API key may rotate the others, and nothing else. */
export const API_HOLDER: Principal = { ...NOBODY, name: 'API', kind: 'token' }

/** Whoever has one of TorchServe's keys, with rights that end with the key, for what it has open too. */
class TokenHolder implements Principal {
  readonly kind = 'token'
  readonly seesAll = true
  readonly name: TokenKind
  readonly #isInForce: () => boolean

  constructor(name: TokenKind, isInForce: () => boolean) {
    this.name = name
    this.#isInForce = isInForce
  }

  sees(): boolean {
    return true
  }

  allows(scope: Scope): boolean {
    const isOfKind = scope === this.name || (scope === 'metrics' && this.name === 'management')
    return isOfKind && this.#isInForce()
  }
}

/** TorchServe's three keys, in a file (mode 0600) that replaces an existing one. */
export class KeyFileTokens {
  readonly keyFile: string
  readonly #lifeMs: number
  readonly #now: () => number
  readonly #warn: (message: string) => void
  readonly #api: Key
  #keys: Keys
  /** Text last written to the file; close() removes the file only if it still holds this. */
  #written = ''
  #closed = false
  /** Runs rotations one after the other. */
  #rotations: Promise<void> = Promise.resolve()
  /** Reused in every comparison, so that a check allocates no buffer. */
  readonly #scratch = Buffer.alloc(KEY_LENGTH)

  /** @param expirationMin lifetime of the inference and management keys, in minutes */
  constructor(
    keyFile: string,
    expirationMin: number,
    now: () => number,
    warn: (message: string) => void = () => undefined,
  ) {
    this.#warn = warn
    this.keyFile = keyFile
    this.#lifeMs = expirationMin * MS_PER_MINUTE
    this.#now = now
    this.#api = newKey(Infinity)
    this.#keys = { management: this.#fresh('management'), inference: this.#fresh('inference') }
  }

  /** Who has this key of ours. The holder of one that has expired has no right any more. */
  find(authorization: string): Principal | undefined {
    // Other tokens are longer or shorter; a key of another kind is no guess.
    const { management, inference } = this.#keys
    if (this.#matches(inference, authorization)) return inference.holder
    if (this.#matches(management, authorization)) return management.holder
    return this.#matches(this.#api, authorization) ? API_HOLDER : undefined
  }

  /** Makes a new key of the kind. */
  async rotate(kind: TokenKind): Promise<void> {
    const rotation = this.#rotations.then(() => this.#replace(kind))
    this.#rotations = rotation.catch(() => undefined)
    await rotation
  }

  /** @throws ServeError CONFIG when the file cannot be written */
  async writeFirst(): Promise<void> {
    try {
      await this.#write(this.#keys)
    } catch (cause) {
      const why = (cause as Error).message
      const hint = 'start with --disable-token-auth to serve without tokens'
      throw new ServeError('CONFIG', `The key file cannot be written: ${why} (${hint})`, { cause })
    }
  }

  /** Removes the file if this server wrote it. Synchronous, because it also runs at process exit. */
  close(): void {
    this.#closed = true
    try {
      if (readFileSync(this.keyFile, 'utf8') === this.#written) rmSync(this.keyFile)
    } catch {
      // gone already
    }
  }

  /** The new key takes effect only once it is on disk: a failed write must not lock everybody out. */
  async #replace(kind: TokenKind): Promise<void> {
    const keys = { ...this.#keys, [kind]: this.#fresh(kind) }
    if (this.#closed) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    await this.#write(keys)
    this.#keys = keys
    if (this.#closed) this.close()
  }

  #fresh(kind: TokenKind): TokenKey {
    const key = newKey(this.#now() + this.#lifeMs)
    const isInForce = (): boolean => this.#now() < key.expires && this.#keys[kind].bytes === key.bytes
    return { ...key, holder: new TokenHolder(kind, isInForce) }
  }

  /** Writes beside and renames: readers never see half a file, and a symlink at the path is not followed. */
  async #write(keys: Keys): Promise<void> {
    const text = keyFileText(keys, this.#api)
    const beside = `${this.keyFile}.${randomBytes(KEY_BYTES).toString('hex')}`
    try {
      await writeFile(beside, text, { mode: 0o600, flag: 'wx', flush: true })
      await putInPlace(beside, this.keyFile)
    } catch (error) {
      await rm(beside, { force: true })
      throw error
    }
    this.#written = text
    if (((await stat(this.keyFile)).mode & 0o004) !== 0)
      this.#warn(`${this.keyFile} can be read by every user of this machine: its file system keeps no modes`)
  }

  /** Runs on every request: allocates only the slice, and compares in constant time. */
  #matches(key: Key, authorization: string): boolean {
    if (!authorization.startsWith('Bearer')) return false
    const start = authorization.length - KEY_LENGTH
    if (!BEARER.test(authorization) || !isBlank(authorization.charCodeAt(start - 1))) return false
    // Non-ASCII characters take more bytes; no key contains any.
    this.#scratch.fill(0)
    this.#scratch.write(authorization.slice(start), 'utf8')
    return timingSafeEqual(this.#scratch, key.bytes)
  }
}

const BEARER = /^Bearer\s+\S+$/

/** Whether `\s` matches the character before the token; otherwise the token is longer. */
function isBlank(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d)
}

function newKey(expires: number): Key {
  const text = randomBytes(KEY_BYTES).toString('base64url')
  return { text, bytes: Buffer.from(text, 'latin1'), expires }
}

/** TorchServe's layout. */
function keyFileText(keys: Keys, api: Key): string {
  const withTime = ({ text, expires }: Key): Record<string, string> => ({
    key: text,
    'expiration time': new Date(expires).toISOString(),
  })
  const layout = {
    management: withTime(keys.management),
    inference: withTime(keys.inference),
    API: { key: api.text },
  }
  return JSON.stringify(layout, undefined, 2)
}

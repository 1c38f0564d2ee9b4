import { ServeError } from '../../common/errors.ts'
import { type ApiKeyEntry, type CertificateEntry, parseApiKeys } from './api-keys-file.ts'
import type { Client, Credential, IdentitySource } from './gatekeeper.ts'
import { type Grant, NamedPrincipal, NOBODY, type Principal } from './principal.ts'
import { WatchedFile } from './watched-file.ts'
import type { PeerCertificate } from 'node:tls'

export interface NamedKeysOptions {
  readonly path: string
  /** Milliseconds since the epoch. */
  readonly now: () => number
  readonly warn: (message: string) => void
  /** The file was read again after a change. Default: nobody wants to know. */
  readonly changed?: ((change: KeysChange) => void) | undefined
}

/** What reading the file again has brought. */
export interface KeysChange {
  /** `failed`: the file cannot be used, and what was read before stays in force. */
  readonly outcome: 'done' | 'failed'
  /** The names of the entries that came, went or changed; or why it failed. Never a key or a hash. */
  readonly detail: string
}

/** What one entry of the file became. */
interface Held {
  readonly principal: NamedPrincipal
  /** The entry as text: an entry that did not change keeps its principal. */
  readonly entry: string
}

/** One hash of a key. */
interface Hash {
  readonly principal: NamedPrincipal
  /** Milliseconds since the epoch: when this hash ends, which may be before its key does. */
  readonly expires: number
}

/** The API keys and client certificates of the keys file, which may change at any time. */
export class NamedKeys implements IdentitySource {
  readonly #options: NamedKeysOptions
  readonly #file: WatchedFile
  #held: ReadonlyMap<string, Held> = new Map()
  #byDigest: ReadonlyMap<string, Hash> = new Map()
  #wasRead = false
  #byCertificate: ReadonlyMap<string, NamedPrincipal> = new Map()

  constructor(options: NamedKeysOptions) {
    this.#options = options
    const { path, warn } = options
    this.#file = new WatchedFile({ path, warn, onText: (text) => this.#read(text) })
  }

  /** @throws ServeError CONFIG when the file cannot be used */
  async open(): Promise<void> {
    const { path } = this.#options
    try {
      await this.#file.open()
    } catch (thrown) {
      if (thrown instanceof ServeError) throw thrown
      const why = (thrown as Error).message
      throw new ServeError('CONFIG', `The keys file ${path} cannot be read: ${why}`, { cause: thrown })
    }
  }

  /** How many entries are in force, and from which file, for the log. */
  get summary(): string {
    const entries = [...this.#held.values()]
    const keys = entries.filter(({ principal }) => principal.kind === 'api key').length
    return `API keys in use: ${keys}; client certificates: ${entries.length - keys}; from ${this.#options.path}`
  }

  find({ digest }: Credential): Principal | undefined {
    const hash = this.#byDigest.get(digest)
    if (hash === undefined) return undefined
    return hash.principal.isValid && this.#options.now() < hash.expires ? hash.principal : NOBODY
  }

  /** The principal of a certificate that has one of these marks (client-certificates.ts). */
  findCertificate(marks: readonly string[]): Principal | undefined {
    for (const mark of marks) {
      const principal = this.#byCertificate.get(mark)
      if (principal !== undefined) return principal
    }
    return undefined
  }

  close(): void {
    this.#file.close()
  }

  #read(text: string): void {
    const before = this.#wasRead ? this.#entries() : undefined
    try {
      this.#take(text)
    } catch (error) {
      if (before !== undefined)
        this.#options.changed?.({ outcome: 'failed', detail: (error as Error).message })
      throw error
    }
    this.#wasRead = true
    if (before !== undefined)
      this.#options.changed?.({ outcome: 'done', detail: difference(before, this.#entries()) })
  }

  /** Each entry with everything that it says, as text. */
  #entries(): ReadonlyMap<string, string> {
    const digests = new Map<string, string[]>()
    for (const [digest, { principal }] of this.#byDigest) {
      const id = `${principal.kind} ${principal.name}`
      digests.set(id, [...(digests.get(id) ?? []), digest])
    }
    return new Map([...this.#held].map(([id, { entry }]) => [id, `${entry} ${String(digests.get(id))}`]))
  }

  /** All or nothing: a file that cannot be used changes nothing. */
  #take(text: string): void {
    const { keys, client_certificates: certificates } = parseApiKeys(this.#options.path, text)
    const held = new Map<string, Held>()
    const byDigest = new Map<string, Hash>()
    for (const key of keys) {
      const { principal } = this.#hold(held, 'api key', key)
      byDigest.set(key.sha256, { principal, expires: Infinity })
      if (key.previous !== undefined && !byDigest.has(key.previous.sha256))
        byDigest.set(key.previous.sha256, { principal, expires: Date.parse(key.previous.expires) })
    }
    const byCertificate = new Map<string, NamedPrincipal>()
    for (const certificate of certificates)
      byCertificate.set(markOf(certificate), this.#hold(held, 'certificate', certificate).principal)
    for (const [id, { principal }] of this.#held)
      if (held.get(id)?.principal !== principal) principal.revoke()
    this.#held = held
    this.#byDigest = byDigest
    this.#byCertificate = byCertificate
    if (held.size === 0)
      this.#options.warn(`The keys file ${this.#options.path} has no entries: no API key is valid`)
  }

  #hold(
    held: Map<string, Held>,
    kind: 'api key' | 'certificate',
    given: ApiKeyEntry | CertificateEntry,
  ): Held {
    const id = `${kind} ${given.name}`
    const entry = JSON.stringify(rightsOf(given))
    const before = this.#held.get(id)
    const now =
      before?.entry === entry
        ? before
        : { principal: new NamedPrincipal(kind, grantOf(given), this.#options.now), entry }
    held.set(id, now)
    return now
  }
}

/**
 * What makes a principal another one. A key that was rotated is the same caller; one whose hash was replaced
 * without a transition is not, so its open calls lose their rights.
 */
function rightsOf(entry: ApiKeyEntry | CertificateEntry): unknown {
  const { name, scopes, models, expires, limits } = entry
  const identity = 'sha256' in entry ? (entry.previous?.sha256 ?? entry.sha256) : markOf(entry)
  return { name, scopes, models, expires, limits, identity }
}

function grantOf({ name, scopes, models, expires, limits }: ApiKeyEntry | CertificateEntry): Grant {
  return { name, scopes, models, limits, expires: expires === undefined ? Infinity : Date.parse(expires) }
}

function markOf(entry: CertificateEntry): string {
  if (entry.subject_alt_name !== undefined) return `san ${entry.subject_alt_name}`
  if (entry.common_name !== undefined) return `cn ${entry.common_name}`
  return `fingerprint ${entry.fingerprint!.toUpperCase()}`
}

function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string {
  const added = [...after.keys()].filter((id) => !before.has(id))
  const removed = [...before.keys()].filter((id) => !after.has(id))
  const changed = [...after]
    .filter(([id, entry]) => before.has(id) && before.get(id) !== entry)
    .map(([id]) => id)
  const parts = Object.entries({ added, removed, changed }).filter(([, ids]) => ids.length > 0)
  return parts.map(([what, ids]) => `${what}: ${ids.join(', ')}`).join('; ') || 'no entry changed'
}

/** The client's certificate as Node shows it, or undefined: none that the configured CA has signed. */
function certificateOf(client: Client): PeerCertificate | undefined {
  if (client.authorized !== true || client.getPeerCertificate === undefined) return undefined
  const certificate = client.getPeerCertificate()
  // Node gives an empty object when there is none.
  return Object.keys(certificate).length === 0 ? undefined : certificate
}

/** What is looked for in the keys file, and until when: milliseconds since the epoch. */
interface Shown {
  readonly marks: readonly string[]
  readonly until: number
}

const NOTHING: Shown = { marks: [], until: Infinity }

/**
 * Who calls, by the certificates of their TLS connections. A connection, or a TLS session that is resumed,
 * may outlive the certificate, and TLS checks it only once.
 */
export class ClientCertificates {
  readonly #keys: NamedKeys
  /** By connection: a certificate stays what it is. */
  readonly #shown = new WeakMap<Client, Shown>()

  constructor(keys: NamedKeys) {
    this.#keys = keys
  }

  find(client: Client): Principal | undefined {
    let shown = this.#shown.get(client)
    if (shown === undefined) {
      const certificate = certificateOf(client)
      shown = certificate === undefined ? NOTHING : shownOf(certificate)
      this.#shown.set(client, shown)
    }
    const { marks, until } = shown
    return marks.length === 0 || Date.now() >= until ? undefined : this.#keys.findCertificate(marks)
  }
}

function shownOf(certificate: PeerCertificate): Shown {
  const until = Date.parse(certificate.valid_to)
  // A date that cannot be read has passed.
  return { marks: marksOf(certificate), until: Number.isNaN(until) ? 0 : until }
}

/** The most exact first. */
function marksOf({ fingerprint256, subjectaltname, subject }: PeerCertificate): string[] {
  // Node puts a name with a comma or a quotation mark in quotation marks.
  const names = subjectaltname?.match(/(?:[^,"]|"(?:[^"\\]|\\.)*")+/g) ?? []
  const common: string | string[] | undefined = subject.CN
  return [
    `fingerprint ${fingerprint256}`,
    ...names.map((name) => `san ${name.trim()}`),
    ...[common]
      .flat()
      .filter((name) => typeof name === 'string')
      .map((name) => `cn ${name}`),
  ]
}

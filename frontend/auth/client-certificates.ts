import type { PeerCertificate } from 'node:tls'
import type { Client } from './authorizer.ts'
import type { NamedKeys } from './named-keys.ts'
import type { Principal } from './principal.ts'

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

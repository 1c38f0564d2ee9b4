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

/** Who calls, by the certificates of their TLS connections. */
export class ClientCertificates {
  readonly #keys: NamedKeys
  /** What is looked for in the keys file, by connection: a certificate stays what it is. */
  readonly #marks = new WeakMap<Client, readonly string[]>()

  constructor(keys: NamedKeys) {
    this.#keys = keys
  }

  find(client: Client): Principal | undefined {
    let marks = this.#marks.get(client)
    if (marks === undefined) {
      const certificate = certificateOf(client)
      marks = certificate === undefined ? [] : marksOf(certificate)
      this.#marks.set(client, marks)
    }
    return marks.length === 0 ? undefined : this.#keys.findCertificate(marks)
  }
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

import type { Socket } from 'node:net'
import { hostAndPort } from '../../config/listen-address.ts'
import { SampledLines } from '../../observe/logs/sampled-lines.ts'

/** Limits at which a connection is closed without an answer. */
type CutKind = 'pipelining' | 'unread' | 'unexplained'

/** What a limit is, and what to do about it, for the operator. */
const WHY: Readonly<Record<CutKind, string>> = {
  pipelining:
    'too many requests came before the answers to earlier ones; no key changes this limit, and a client that ' +
    'waits for its answers does not meet it',
  unread:
    'too many bytes of answers wait for their clients to read them (max_unfinished_bytes); raise it if your ' +
    'clients are slow and the server has the memory',
  unexplained:
    'more bytes came that belong to no request than a client has a reason to send; no key changes this limit',
}

type Client = Pick<Socket, 'remoteAddress' | 'remotePort'>

/**
 * Tells in the log why connections were closed whose clients cannot be told: at most one line each second for
 * each limit, so that a flood does not fill it, with the number of those that are left out.
 */
export class CutWarnings {
  readonly #warn: (message: string) => void
  readonly #samples: Readonly<Record<CutKind, SampledLines>>

  constructor(warn: (message: string) => void) {
    this.#warn = warn
    const sample = (kind: CutKind): SampledLines =>
      new SampledLines(1, (leftOut) => warn(`More connections (${leftOut}) were closed: ${WHY[kind]}`))
    this.#samples = {
      pipelining: sample('pipelining'),
      unread: sample('unread'),
      unexplained: sample('unexplained'),
    }
  }

  /** A connection is closed; to be called before, because its address is gone afterwards. */
  tell(kind: CutKind, client: Client): void {
    const leftOut = this.#samples[kind].next()
    if (leftOut === undefined) return
    const others = leftOut === 0 ? '' : ` (and ${leftOut} more before it)`
    this.#warn(`The connection of ${nameOf(client)}${others} was closed: ${WHY[kind]}`)
  }

  /** Tells how many were left out. To be called before the log ends. */
  close(): void {
    for (const sample of Object.values(this.#samples)) sample.close()
  }
}

function nameOf({ remoteAddress, remotePort }: Client): string {
  const isUnix = remoteAddress === undefined || remotePort === undefined
  return isUnix ? 'a client on a Unix socket' : hostAndPort(remoteAddress, remotePort)
}

import type { RequestSpan } from '../observe/traces/tracing.ts'

/** Who sent a request. Few requests need any of it, so it is read only then. */
export interface Sender {
  /** The address of the client, without its port. */
  readonly address: string
  /** Name of the API key or certificate, the subject of the JWT; undefined: TorchServe's keys, or none. */
  readonly keyName: string | undefined
  /** Tells callers with names apart; undefined where `keyName` is. */
  readonly identity: string | undefined
  /** Of the request; undefined: it has none. */
  readonly span?: RequestSpan | undefined
  /** Weights chose this version for a request of it. Absent: nobody wants to know. */
  servedBy?(version: string): void
}

/** The address of a client that has none. */
export const UNIX_SOCKET = 'unix socket'

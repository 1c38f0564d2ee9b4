import { readFileSync } from 'node:fs'
import type { Settings } from '../../config/settings.ts'
import { Budget } from './budget.ts'
import { ConnectionPool } from './connection-pool.ts'
import { CutWarnings } from './cut-warnings.ts'

/** More need a key: each idle connection takes some 20 KB. */
const MAX_DEFAULT = 2_048
/** Where the limit of the process cannot be read. */
const USUAL_DESCRIPTORS = 1_024

type AdmissionSettings = Pick<
  Settings,
  'maxConnections' | 'maxUnfinishedBytes' | 'maxRequestSize' | 'maxResponseSize'
>

/** How the descriptors of the process are divided. */
export interface ConnectionPlan {
  /** Connections of all listeners for inference together. */
  readonly inference: number
  /** Connections of each listener for management or metrics, so that they answer in a flood of inference. */
  readonly reserved: number
}

/**
 * A quarter of the descriptors stays for workers, archives and files, and a sixteenth for each of the three
 * listeners for management and metrics.
 */
export function connectionPlan(
  { maxConnections }: Pick<Settings, 'maxConnections'>,
  descriptors = descriptorLimit(),
): ConnectionPlan {
  const reserved = Math.min(256, Math.max(8, Math.floor(descriptors / 16)))
  const rest = Math.floor(descriptors * 0.75) - 3 * reserved
  return { inference: maxConnections ?? Math.max(16, Math.min(MAX_DEFAULT, rest)), reserved }
}

/** Requests that wait for earlier answers of their connections; each takes some 10 KB. */
const MAX_WAITING_REQUESTS = 4_096

/** Each address has room for one request that is there twice, compressed and not, or for two answers. */
const FIT = 4
/**
 * How many times the bytes of requests: answers wait for a moment for clients that read, too, and all clients
 * of a proxy have one address.
 */
const ANSWERS = 4
const MEBIBYTE = 1_048_576

/** What each connection needs. */
export type ClientAdmission = Pick<Admission, 'requests' | 'answers' | 'waiting' | 'cuts'>

/** What the clients of all listeners may have of the server. */
export class Admission {
  /** Connections for inference, over REST and gRPC. */
  readonly inference: ConnectionPool
  /** Bytes of requests that have not come to their end. */
  readonly requests: Budget
  /** Bytes of answers that their clients have not read. */
  readonly answers: Budget
  /** HTTP requests that wait for the answers before them on their connections. */
  readonly waiting = new Budget(MAX_WAITING_REQUESTS)
  /** Logs why connections are closed. */
  readonly cuts: CutWarnings
  readonly #reserved: number
  readonly #warn: (message: string) => void
  readonly #watch: (pool: ConnectionPool) => void

  /** `watch` gets each pool when it is made. */
  constructor(
    settings: AdmissionSettings,
    warn: (message: string) => void,
    watch: (pool: ConnectionPool) => void,
  ) {
    const { inference, reserved } = connectionPlan(settings)
    this.#reserved = reserved
    this.#warn = warn
    this.#watch = watch
    this.cuts = new CutWarnings(warn)
    const { maxUnfinishedBytes, maxRequestSize, maxResponseSize } = settings
    this.requests = new Budget(Math.max(maxUnfinishedBytes, FIT * maxRequestSize + MEBIBYTE))
    this.answers = new Budget(Math.max(ANSWERS * maxUnfinishedBytes, FIT * maxResponseSize))
    this.inference = this.#create('inference', inference)
  }

  /** Connections of one listener for management or metrics. */
  reserve(name: string): ConnectionPool {
    return this.#create(name, this.#reserved)
  }

  #create(name: string, max: number): ConnectionPool {
    const pool = new ConnectionPool(name, max, this.#warn)
    this.#watch(pool)
    return pool
  }
}

/** How many files and sockets this process may have open; Node has raised its soft limit to the hard one. */
function descriptorLimit(): number {
  try {
    const [, soft] = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'))!
    return soft === 'unlimited' ? Infinity : Number(soft)
  } catch {
    return USUAL_DESCRIPTORS
  }
}

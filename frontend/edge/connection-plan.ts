import { readFileSync } from 'node:fs'
import type { Settings } from '../config/settings.ts'
import { ConnectionPool, type PoolLimits } from './connection-pool.ts'

/** More need a key: each idle connection takes some 20 KB. */
const MAX_DEFAULT = 8_192
/** Where the limit of the process cannot be read. */
const USUAL_DESCRIPTORS = 1_024

export type PoolSettings = Pick<
  Settings,
  'maxConnections' | 'maxConnectionsPerAddress' | 'maxNewConnectionsPerAddress'
>

/** How the descriptors of the process are divided. */
export interface ConnectionPlan {
  /** Of all listeners for inference together. */
  readonly inference: PoolLimits
  /** Of each listener for management or metrics: reserved, so that they answer in a flood of inference. */
  readonly reserved: PoolLimits
}

/**
 * A quarter of the descriptors stays for workers, archives and files, and a sixteenth for each of the three
 * listeners for management and metrics. One address may have half of what there is.
 */
export function connectionPlan(settings: PoolSettings, descriptors = descriptorLimit()): ConnectionPlan {
  const reserved = Math.min(256, Math.max(8, Math.floor(descriptors / 16)))
  const rest = Math.floor(descriptors * 0.75) - 3 * reserved
  const max = settings.maxConnections ?? Math.max(16, Math.min(MAX_DEFAULT, rest))
  const maxPerAddress = settings.maxConnectionsPerAddress ?? Math.ceil(max / 2)
  const { maxNewConnectionsPerAddress: newPerAddress } = settings
  return {
    inference: { max, maxPerAddress, newPerAddress },
    reserved: {
      max: reserved,
      maxPerAddress: Math.min(maxPerAddress, Math.ceil(reserved / 2)),
      newPerAddress,
    },
  }
}

/** The pools of a server's listeners. */
export class ConnectionPools {
  readonly inference: ConnectionPool
  readonly #reserved: PoolLimits
  readonly #warn: (message: string) => void
  readonly #watch: (pool: ConnectionPool) => void

  /** `watch` gets each pool when it is made. */
  constructor(
    settings: PoolSettings,
    warn: (message: string) => void,
    watch: (pool: ConnectionPool) => void,
  ) {
    const { inference, reserved } = connectionPlan(settings)
    this.#reserved = reserved
    this.#warn = warn
    this.#watch = watch
    this.inference = this.#create('inference', inference)
  }

  /** A pool for one listener for management or metrics. */
  reserve(name: string): ConnectionPool {
    return this.#create(name, this.#reserved)
  }

  #create(name: string, limits: PoolLimits): ConnectionPool {
    const pool = new ConnectionPool(name, limits, this.#warn)
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

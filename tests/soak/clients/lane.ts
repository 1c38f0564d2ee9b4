import type { Random } from '../../support/random.ts'
import type { Server } from '../../support/server-process.ts'
import type { Callers } from '../callers.ts'
import type { Excuses } from '../excuses.ts'
import type { Faults } from '../faults.ts'
import type { Ledger } from '../ledger.ts'

/** What every client has. */
export interface Lane {
  readonly server: Server
  readonly ledger: Ledger
  readonly faults: Faults
  readonly excuses: Excuses
  readonly callers: Callers
  readonly random: Random
}

/** Milliseconds in which every request must have ended, whatever happens to its worker. */
const LIMIT_MS = 60_000

let numbers = 0

/** A request id that no other request of this run has. */
export function newId(): string {
  numbers += 1
  return `r${numbers}`
}

/** @throws Error when it does not settle in time */
export async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no end in ${LIMIT_MS} ms`)), LIMIT_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
  }
}

import { appendFileSync, existsSync } from 'node:fs'
import type { HandlerRequest } from 'torchserve-ts'
import { opened } from '../gate.ts'

/** What a request asks of the handler; each part is optional. */
export interface Asked {
  /** Appended to the file `log` when the request begins. */
  name?: string
  log?: string
  /** Waits until this file is there. */
  until?: string
  /** The same, but holds the event loop. */
  block?: string
  /** Ends the process. */
  die?: boolean
}

/** One request at a time; answers with its pid. */
export async function handle([request]: HandlerRequest[]): Promise<unknown[]> {
  const { name, log, until, block, die } = (request!['body'] ?? {}) as Asked
  if (log !== undefined) appendFileSync(log, `${name}\n`)
  if (die === true) process.exit(3)
  if (block !== undefined) while (!existsSync(block)) pause(1)
  if (until !== undefined) await opened(until)
  return [String(process.pid)]
}

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

import { join } from 'node:path'
import { NODE_FOLDER, pythonFor } from './install.ts'
import { PROGRAMS } from './places.ts'
import { execa } from '../support/tools.ts'

const LIMIT_MS = 240_000

export interface Counts {
  passed: number
  failed: number
}

/** What every client program finds in its environment. */
export interface Targets {
  /** `http://127.0.0.1:PORT` */
  readonly REST_URL: string
  readonly MANAGEMENT_URL: string
  /** `127.0.0.1:PORT` of the listener with MLServer's streams. */
  readonly MLSERVER_TARGET: string
  /** The same with Triton's. */
  readonly TRITON_TARGET: string
}

/**
 * Runs a client program in a process of its own, because the stubs of tritonclient, kserve and MLServer
 * conflict. It prints `ok NAME` or `FAILED NAME` per check, details indented, and `DONE`. A missing `DONE`,
 * or no check at all, is a failure too.
 */
export async function runProgram(file: string, targets: Targets, counts: Counts): Promise<void> {
  const command = file.endsWith('.py') ? pythonFor(file) : process.execPath
  const running = execa(command, [join(PROGRAMS, file)], {
    all: true,
    buffer: false,
    env: { ...targets, NODE_FOLDER, PYTHONUNBUFFERED: '1', PYTHONDONTWRITEBYTECODE: '1' },
    reject: false,
    stdin: 'ignore',
    timeout: LIMIT_MS,
    forceKillAfterDelay: 2_000,
  })
  console.log(`== ${file}`)
  let checks = 0
  let done = false
  for await (const line of running.iterable({ from: 'all' })) {
    if (line === 'DONE') {
      done = true
      continue
    }
    console.log(line)
    if (/^(ok|FAILED) /.test(line)) {
      checks += 1
      counts[line.startsWith('ok') ? 'passed' : 'failed'] += 1
    }
  }
  const { exitCode, timedOut } = await running
  if (done && checks > 0) return
  counts.failed += 1
  const how = timedOut ? `was ended after ${LIMIT_MS} ms` : `ended with ${exitCode ?? 'a signal'}`
  console.log(`FAILED ${file} runs to its end: it ${how} after ${checks} checks`)
}

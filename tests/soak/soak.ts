import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processTree } from '../../benchmarks/processes.ts'
import { ALL_DIALECTS } from '../support/port-dialects.ts'
import { isRunning } from '../support/processes.ts'
import type { Random } from '../support/random.ts'
import { launchServer, type Server, started } from '../support/server-process.ts'
import type { Lane } from './clients/lane.ts'
import { streams } from './clients/streams.ts'
import { sums } from './clients/sums.ts'
import { uploads } from './clients/uploads.ts'
import { Faults } from './faults.ts'
import { Ledger } from './ledger.ts'
import { LogWatch } from './log-watch.ts'
import { GUEST, LOADED, makeStore } from './models.ts'
import { type Check, compare, PROBE, settled } from './vitals.ts'

export interface SoakOptions {
  /** A new folder for everything of the server. */
  folder: string
  minutes: number
  /** Clients that stream; there are some more for uploads and sequences. */
  clients: number
  random: Random
}

export interface SoakResult {
  readonly ledger: Ledger
  readonly faults: Faults
  readonly checks: readonly Check[]
  readonly seconds: number
}

/** After this part of the time, or so many seconds, the server is taken to have grown as far as it does. */
const WARM_UP = 0.25
const MAX_WARM_UP_S = 120
const PROGRESS_MS = 30_000
const SEQUENCE_LANES = 2
const UPLOAD_LANES = 2

/** Runs the server, the clients and the faults; stops all of them. */
export async function soak({ folder, minutes, clients, random }: SoakOptions): Promise<SoakResult> {
  const store = join(folder, 'store')
  await makeStore(store)
  const server = launchServer({
    folder,
    modelStore: store,
    models: [...LOADED, GUEST].map((name) => `${name}=${join(store, name)}`),
    config: ALL_DIALECTS,
    nodeArgs: PROBE,
  })
  const log = new LogWatch(server)
  try {
    await started(server)
    for (const model of LOADED) await server.ready(model, 60_000)
    const ledger = new Ledger((line) => console.log(`  ${line}`))
    const faults = new Faults(server, random.branch())
    const run = (seconds: number): Promise<void> => load(server, ledger, faults, { clients, random, seconds })
    const warmUp = Math.min(minutes * 60 * WARM_UP, MAX_WARM_UP_S)
    await run(warmUp)
    const before = await settled(server)
    await run(minutes * 60 - warmUp)
    const after = await settled(server)
    const checks = [...compare(before.vitals, after.vitals), ...after.gauges, await ended(server, log)]
    checks.push(...log.checks(), {
      name: 'faults',
      isPassed: faults.errors.length === 0,
      detail: faults.errors.join('; '),
    })
    return { ledger, faults, checks, seconds: minutes * 60 }
  } finally {
    log.stop()
    await server.stop('SIGKILL')
  }
}

interface Load {
  clients: number
  random: Random
  seconds: number
}

/** Everything at the same time for so long, and then until it has ended. */
async function load(server: Server, ledger: Ledger, faults: Faults, options: Load): Promise<void> {
  const { clients, random, seconds } = options
  const stop = new AbortController()
  const lane = (): Lane => ({ server, ledger, faults, random: random.branch() })
  const lanes = (count: number, run: (lane: Lane, signal: AbortSignal) => Promise<void>): Promise<void>[] =>
    Array.from({ length: count }, () => run(lane(), stop.signal))
  const began = performance.now()
  const progress = setInterval(() => {
    const now = Math.round((performance.now() - began) / 1000)
    const problems = [...ledger.counts].map(([problem, count]) => `, ${count} ${problem}`).join('')
    console.log(
      `  ${now} s: ${ledger.asked} requests, faults ${JSON.stringify(Object.fromEntries(faults.counts))}${problems}`,
    )
  }, PROGRESS_MS)
  const running = [
    ...lanes(clients, streams),
    ...lanes(SEQUENCE_LANES, sums),
    ...lanes(UPLOAD_LANES, uploads),
    faults.run(stop.signal),
  ]
  await Promise.race([sleep(seconds * 1000), gone(server)])
  stop.abort()
  await Promise.all(running)
  clearInterval(progress)
}

function gone({ process: child }: Server): Promise<void> {
  return new Promise((resolve) => child.once('exit', () => resolve()))
}

/** The stop: its status, and that no process outlives it. */
async function ended(server: Server, log: LogWatch): Promise<Check> {
  const tree = processTree(server.pid)
  const status = await server.stop()
  const left = tree.filter(isRunning)
  log.look()
  const files = server.leftovers().filter((name) => name !== 'models')
  return {
    name: 'ends with status 0, no process and no file',
    isPassed: status === 0 && left.length === 0 && files.length === 0,
    detail: `status ${status}, ${left.length} processes, files: ${files.join(' ')}`,
  }
}

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { processTree } from '../../benchmarks/processes.ts'
import { ALL_DIALECTS } from '../support/port-dialects.ts'
import { isRunning } from '../support/processes.ts'
import type { Random } from '../support/random.ts'
import { launchServer, type Server, started } from '../support/server-process.ts'
import { Callers, KeysFile, type Lasting, lastingCallers, torchserveCaller } from './callers.ts'
import type { Lane } from './clients/lane.ts'
import { strangers } from './clients/strangers.ts'
import { streams } from './clients/streams.ts'
import { sums } from './clients/sums.ts'
import { uploads } from './clients/uploads.ts'
import { Excuses } from './excuses.ts'
import { Faults } from './faults.ts'
import { Ledger } from './ledger.ts'
import { LogWatch } from './log-watch.ts'
import { LOADED, makeStore, makeWorkflowStore, PYTHON, WORKFLOW } from './models.ts'
import { Operator } from './operator.ts'
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
  readonly operator: Operator
  readonly callers: Callers
  readonly checks: readonly Check[]
  readonly seconds: number
}

/** After this part of the time, or so many seconds, the server is taken to have grown as far as it does. */
const WARM_UP = 0.25
const MAX_WARM_UP_S = 120
const PROGRESS_MS = 30_000
const SEQUENCE_LANES = 2
const UPLOAD_LANES = 2
/** Milliseconds in which a model is there on an idle machine; Python's take longest. */
const LOAD_MS = 60_000

/** Runs the server, the clients, the operator and the faults; stops all of them. */
export async function soak({ folder, minutes, clients, random }: SoakOptions): Promise<SoakResult> {
  const file = new KeysFile(folder)
  const lasting = await lastingCallers(file)
  const server = await launch(folder, file)
  const log = new LogWatch(server)
  try {
    const all = await prepare(server, file, lasting, random)
    const { ledger, faults, operator, callers } = all
    const run = (seconds: number): Promise<void> => load(all, { clients, random, seconds })
    const warmUp = Math.min(minutes * 60 * WARM_UP, MAX_WARM_UP_S)
    await run(warmUp)
    const before = await settled(server)
    await run(minutes * 60 - warmUp)
    const after = await settled(server)
    const checks = [
      ...compare(before.vitals, after.vitals),
      ...after.gauges,
      await ended(server, log),
      ...log.checks(),
      ...[['faults', faults] as const, ['operator', operator] as const, ['keys', callers] as const].map(
        ([name, { errors }]) => ({ name, isPassed: errors.length === 0, detail: errors.join('; ') }),
      ),
    ]
    return { ledger, faults, operator, callers, checks, seconds: minutes * 60 }
  } finally {
    log.stop()
    await server.stop('SIGKILL')
  }
}

/** A server with tokens, API keys, and all models and workflows; it starts. */
async function launch(folder: string, file: KeysFile): Promise<Server> {
  const store = join(folder, 'store')
  const workflows = join(folder, 'workflows')
  const models = await makeStore(store)
  await makeWorkflowStore(workflows)
  return launchServer({
    folder,
    modelStore: store,
    models,
    config: {
      ...ALL_DIALECTS,
      ...(PYTHON !== undefined && { python: PYTHON.python }),
      workflow_store: workflows,
      api_keys_file: file.path,
      // Longer than any run.
      token_expiration_min: 100_000,
    },
    flags: ['--enable-model-api'],
    nodeArgs: PROBE,
  })
}

/** Everyone who does something to the server, when it has all models. */
async function prepare(server: Server, file: KeysFile, lasting: Lasting, random: Random): Promise<Everyone> {
  await started(server)
  server.headers = torchserveCaller(server, 'management').headers
  const { status, json } = await server.manage('POST', `/workflows?url=${WORKFLOW}.war`)
  if (status !== 200) throw new Error(`The workflow was not registered: ${JSON.stringify(json)}`)
  const excuses = new Excuses()
  const everyone = {
    server,
    ledger: new Ledger((line) => console.log(`  ${line}`)),
    excuses,
    faults: new Faults(server, random.branch(), excuses),
    operator: new Operator(server, random.branch(), excuses, lasting.operator),
    callers: await Callers.create(server, file, lasting),
  }
  await everyone.operator.prepare()
  for (const model of LOADED) await server.ready(model, LOAD_MS)
  return everyone
}

type Everyone = Omit<Lane, 'random'> & { readonly operator: Operator }

interface Load {
  clients: number
  random: Random
  seconds: number
}

/** Everything at the same time for so long, and then until it has ended. */
async function load(everyone: Everyone, { clients, random, seconds }: Load): Promise<void> {
  const { server, faults, operator, callers } = everyone
  const stop = new AbortController()
  const lane = (): Lane => ({ ...everyone, random: random.branch() })
  const lanes = (count: number, run: (lane: Lane, signal: AbortSignal) => Promise<void>): Promise<void>[] =>
    Array.from({ length: count }, () => run(lane(), stop.signal))
  const began = performance.now()
  const progress = setInterval(() => {
    console.log(`  ${Math.round((performance.now() - began) / 1000)} s: ${progressOf(everyone)}`)
  }, PROGRESS_MS)
  const running = [
    ...lanes(clients, streams),
    ...lanes(SEQUENCE_LANES, sums),
    ...lanes(UPLOAD_LANES, uploads),
    ...lanes(1, strangers),
    faults.run(stop.signal),
    operator.run(stop.signal),
    callers.run(random.branch(), stop.signal),
  ]
  await Promise.race([sleep(seconds * 1000), gone(server)])
  stop.abort()
  await Promise.all(running)
  clearInterval(progress)
}

function progressOf({ ledger, faults, operator, callers }: Everyone): string {
  const problems = [...ledger.counts].map(([problem, count]) => `, ${count} ${problem}`).join('')
  const done = { ...Object.fromEntries([...faults.counts, ...operator.counts]), rotate: callers.rotations }
  return `${ledger.asked} requests, ${JSON.stringify(done)}${problems}`
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

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { processTree } from '../../benchmarks/processes.ts'
import { residentBytes } from '../support/memory.ts'
import { REPOSITORY, type Server } from '../support/server-process.ts'
import { DIGEST, LOADED, SUMS } from './models.ts'

/** How the server must be started so that its heap can be read. */
export const PROBE = ['--expose-gc', '--import', join(REPOSITORY, 'tests/support/heap-probe.mjs')]

const GAUGES = ['open_requests', 'open_streams', 'queue_depth'] as const
const MIB = 1024 ** 2
/** What memory may grow: garbage that was not returned yet, and caches that fill. */
const HEAP_GROWTH = 8 * MIB
const RESIDENT_GROWTH = 0.25
const RESIDENT_SPARE = 32 * MIB
/** Counts that are the same in so many looks in a row, about 10 ms apart, are what they will be. */
const STEADY_LOOKS = 100
const STEADY_MS = 60_000

/** The state of a server without clients. Bytes and counts. */
export interface Vitals {
  readonly heap: number
  readonly resident: number
  /** Of a worker that lives from the start to the end. */
  readonly workerResident: number
  readonly descriptors: readonly string[]
  readonly workerDescriptors: readonly string[]
  readonly processes: number
  /** Entries of its temporary folder: folders of sockets and of unpacked models. */
  readonly files: number
}

/** One line of the report. */
export interface Check {
  readonly name: string
  readonly isPassed: boolean
  readonly detail: string
}

/** Waits until nothing is under way, then measures. Gauges that do not become zero are failed checks. */
export async function settled(server: Server): Promise<{ vitals: Vitals; gauges: Check[] }> {
  const gauges: Check[] = []
  for (const model of LOADED) await server.ready(model, 60_000)
  for (const gauge of GAUGES) gauges.push(await zero(gauge, () => server.metric(`torchserve_ts_${gauge}`)))
  gauges.push(await zero('requests on workers', async () => sumOf(await workers(server), 'inFlight')))
  const sequences = async (): Promise<number> => (await server.describe(SUMS))[0]!.openSequences ?? 0
  gauges.push(await zero('open sequences', sequences))
  return { vitals: await steady(server), gauges }

  async function zero(name: string, read: () => Promise<number>): Promise<Check> {
    const value = await server.until(read, (each) => each === 0).catch((error: unknown) => String(error))
    return { name: `gauge: ${name}`, isPassed: value === 0, detail: String(value) }
  }
}

/**
 * Measures when the counts have been the same for some time, because sockets close a little later: also those
 * of the requests that are made here.
 */
async function steady(server: Server): Promise<Vitals> {
  const { pid: worker } = await server.worker(DIGEST)
  let last = ''
  let same = 0
  await server.until(
    () => {
      const now = `${descriptorsOf(server.pid).join()} ${processesOf(server)}`
      same = now === last ? same + 1 : 0
      last = now
      return Promise.resolve(same)
    },
    (looks) => looks >= STEADY_LOOKS,
    STEADY_MS,
  )
  return measure(server, worker)
}

async function measure(server: Server, worker: number): Promise<Vitals> {
  return {
    heap: await heapBytes(server),
    resident: residentBytes(server.pid),
    workerResident: residentBytes(worker),
    descriptors: descriptorsOf(server.pid),
    workerDescriptors: descriptorsOf(worker),
    processes: processesOf(server),
    files: foldersOf(server),
  }
}

/** What each one is of: sockets and pipes without their numbers, files by their paths. Sorted. */
function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`
  const targets = readdirSync(folder).flatMap((name) => {
    try {
      return readlinkSync(join(folder, name)).replace(/:\[\d+\]$/, '')
    } catch {
      return []
    }
  })
  return targets.sort()
}

function processesOf(server: Server): number {
  return processTree(server.pid).filter((pid) => !isZombie(pid)).length
}

/** Not recursive: models have links to the packages of the server. */
function foldersOf({ folder }: Server): number {
  const temp = join(folder, 'tmp')
  return readdirSync(temp).length + readdirSync(join(temp, 'models')).length
}

/** Compares the end with the start. */
export function compare(before: Vitals, after: Vitals): Check[] {
  const same = (name: 'processes' | 'files'): Check => ({
    name: `${name} as at the start`,
    isPassed: after[name] === before[name],
    detail: `${before[name]} -> ${after[name]}`,
  })
  const noMoreDescriptors = (name: 'descriptors' | 'workerDescriptors'): Check => ({
    // A thread that was idle may have ended.
    name: `no more ${name} than at the start`,
    isPassed: grown(before[name], after[name]).length === 0,
    detail: `${before[name].length} -> ${after[name].length}${difference(before[name], after[name])}`,
  })
  const memory = (name: 'heap' | 'resident' | 'workerResident', limit: number): Check => ({
    name: `${name} as at the start`,
    isPassed: after[name] <= limit,
    detail: `${mib(before[name])} -> ${mib(after[name])} MiB, limit ${mib(limit)}`,
  })
  const resident = (bytes: number): number => bytes * (1 + RESIDENT_GROWTH) + RESIDENT_SPARE
  return [
    memory('heap', before.heap + HEAP_GROWTH),
    memory('resident', resident(before.resident)),
    memory('workerResident', resident(before.workerResident)),
    noMoreDescriptors('descriptors'),
    noMoreDescriptors('workerDescriptors'),
    same('processes'),
    same('files'),
  ]
}

function count(all: readonly string[], kind: string): number {
  return all.filter((each) => each === kind).length
}

/** The kinds of which there are more. */
function grown(before: readonly string[], after: readonly string[]): string[] {
  return [...new Set(after)].filter((kind) => count(after, kind) > count(before, kind))
}

/** Each kind of which there are more or fewer. */
function difference(before: readonly string[], after: readonly string[]): string {
  return [...new Set([...before, ...after])]
    .filter((kind) => count(before, kind) !== count(after, kind))
    .map((kind) => `, ${kind}: ${count(before, kind)} -> ${count(after, kind)}`)
    .join('')
}

/** The probe answers on stderr; the server's list of lines is cut from time to time. */
async function heapBytes(server: Server): Promise<number> {
  let text = ''
  const take = (data: Buffer): void => void (text += data.toString())
  server.process.stderr!.on('data', take)
  process.kill(server.pid, 'SIGUSR2')
  const found = await server.until(
    () => Promise.resolve(/^heap-probe (\d+)\n/m.exec(text)),
    (match) => match !== null,
  )
  server.process.stderr!.off('data', take)
  return Number(found![1])
}

async function workers(server: Server): Promise<{ inFlight: number }[]> {
  const all = await Promise.all(LOADED.map((model) => server.describe(model)))
  return all.flatMap(([version]) => version!.workers)
}

function sumOf<K extends string>(rows: Record<K, number>[], key: K): number {
  return rows.reduce((sum, row) => sum + row[key], 0)
}

function isZombie(pid: number): boolean {
  try {
    return /^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'))
  } catch {
    return true
  }
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(1)
}

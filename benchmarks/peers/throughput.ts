import type { Generator } from '../generators/generator.ts'
import { verify, type Case } from '../measures/cases.ts'
import { measureBursts, type Burst } from '../measures/throughput.ts'
import { median } from '../statistics.ts'
import { caseOf, isStream, type PeerCase } from './cases.ts'
import type { PeerOptions } from './options.ts'
import type { Running } from './running.ts'
import { spread, type Spread } from './spread.ts'

/** One server in one case. */
export interface PeerRow {
  case: PeerCase
  target: string
  /** Complete answers per second; streams: items received divided by those of a stream. */
  perSecond: Spread
  itemsPerSecond?: number
  /** HTTP chunks or gRPC messages of one answer. */
  pieces: number
  /** Milliseconds of complete answers. */
  p50?: number
  p99?: number
  /** CPU time of all the server's processes per answer in microseconds. */
  cpuMicroseconds: number
  /** The generator's CPU time as a share of one processor. */
  generatorShare: number
  errors: number
  /** torchserve-ts divided by this server, of paired rounds. */
  ratio?: Spread
  rounds: readonly Burst[]
}

/** A server that a case leaves out. */
export interface Absence {
  target: string
  what: string
  reason: string
}

interface Entrant {
  kase: Case
  running: Running
  bytes: number
  pieces: number
}

/** Loads all servers in turns with one case. The first server is torchserve-ts. */
export async function measurePeers(
  name: PeerCase,
  servers: readonly Running[],
  generator: Generator,
  options: PeerOptions,
): Promise<{ rows: PeerRow[]; absent: Absence[] }> {
  const absent: Absence[] = []
  const entrants: Entrant[] = []
  for (const running of servers) {
    await reviveOf(name, running, absent)
    const entrant = await enter(name, running)
    if (typeof entrant === 'string') absent.push({ target: running.name, what: name, reason: entrant })
    else entrants.push(entrant)
  }
  const kase = { ...entrants[0]!.kase, load: loadOf(entrants) }
  const targets = entrants.map(({ running }) => running.target)
  const bursts = await measureBursts(kase, targets, options.clients, generator, options)
  const rows = entrants.map((entrant, i) =>
    row(name, entrant, bursts[i]!, i === 0 ? undefined : bursts[0]!, entrants),
  )
  return { rows, absent }
}

/** A server that the load of another case has ended gets another chance, and that is said. */
async function reviveOf(name: PeerCase, running: Running, absent: Absence[]): Promise<void> {
  if (!(await running.revive())) return
  absent.push({
    target: running.name,
    what: `before ${name}`,
    reason: 'it had ended by itself; it was started again',
  })
}

/** Checks an answer, so that nothing wrong is measured. @returns the reason if the case cannot be measured */
async function enter(name: PeerCase, running: Running): Promise<Entrant | string> {
  const kase = caseOf(name, running.peer)
  if (kase === undefined) return 'has no gRPC'
  try {
    const { bytes, pieces } = await verify(running.target, kase, 1)
    return { kase, running, bytes, pieces }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function loadOf(entrants: readonly Entrant[]): Case['load'] {
  return (target) => entrants.find(({ running }) => running.target === target)!.kase.load(target)
}

function row(
  name: PeerCase,
  entrant: Entrant,
  bursts: readonly Burst[],
  ours: readonly Burst[] | undefined,
  entrants: readonly Entrant[],
): PeerRow {
  const rates = bursts.map((burst) => rate(name, burst, entrant))
  const perSecond = spread(rates)
  return {
    case: name,
    target: entrant.running.name,
    perSecond,
    itemsPerSecond: isStream(name) ? perSecond.median * entrant.kase.items : undefined,
    pieces: entrant.pieces,
    p50: latency(bursts, 'p50'),
    p99: latency(bursts, 'p99'),
    cpuMicroseconds: median(bursts.map((burst, i) => (burst.cpuMs * 1000) / (rates[i]! * burst.seconds))),
    generatorShare: median(bursts.map((burst) => burst.generatorCpuMs / (burst.seconds * 1000))),
    errors: bursts.reduce((total, burst) => total + burst.errors, 0),
    ratio: ours && spread(ours.map((burst, i) => rate(name, burst, entrants[0]!) / rates[i]!)),
    rounds: bursts,
  }
}

/** Streams that the end of a burst cuts count with what has arrived: else a slow server would lose them. */
function rate(name: PeerCase, { requests, bytes, seconds }: Burst, entrant: Entrant): number {
  return (isStream(name) && bytes !== undefined ? bytes / entrant.bytes : requests) / seconds
}

function latency(bursts: readonly Burst[], which: 'p50' | 'p99'): number | undefined {
  const values = bursts.map((burst) => burst[which]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

import type { Generator, LoadResult } from '../generators/generator.ts'
import { childCpuMilliseconds, cpuMilliseconds } from '../processes.ts'
import type { Requirement } from '../requirements.ts'
import { pause } from './figure.ts'
import { median } from '../statistics.ts'
import type { Target } from '../targets/target.ts'
import { verify, type Case } from './cases.ts'

/** A target, and the target it is compared with. */
export interface Contender {
  target: Target
  /** Index of the ceiling in the list of contenders. */
  against?: number
  /** Minimum share of that target's throughput. */
  required?: Requirement
}

/** How long one comparison takes. */
export interface Pace {
  /** Turns of every contender. */
  rounds: number
  /** Seconds of one burst of load, at least 0.2. */
  seconds: number
  /** Seconds of load before the first round. */
  warmUp: number
}

/** The ratios of the rounds, in their order, and their median, minimum and maximum. */
export interface Ratio {
  median: number
  min: number
  max: number
  rounds: number[]
  /** The same of requests per second of CPU time, which other work on the machine changes less. */
  perCpuTime: number[]
}

export interface ThroughputRow {
  case: string
  clients: number
  target: string
  /** Medians over the rounds. */
  requestsPerSecond: number
  chunksPerSecond?: number
  /** Milliseconds. */
  p50?: number
  p99?: number
  /**
   * CPU time of all the target's processes per request in microseconds; varies less than latency on a busy
   * machine.
   */
  cpuMicroseconds: number
  /** The frontend's part of it. */
  frontendMicroseconds: number
  against?: string
  ratio?: Ratio
  required?: number
  ok?: boolean
}

/** What a burst of load cost, in milliseconds of CPU time: the target, its first process, the generator. */
export type Burst = LoadResult & { cpuMs: number; frontendMs: number; generatorCpuMs: number }

/**
 * Of one burst to warm up. wrk opens its connections in each burst, and orders its headers by chance: code
 * that was compiled for one order is compiled again for the next, so one long burst is not enough.
 */
const WARM_UP_SECONDS = 0.25
const QUIET_MS = 100
const QUIET_LIMIT_MS = 8000

/** Measures one case for all contenders in turns, round after round, so that noise affects them equally. */
export async function measureThroughput(
  kase: Case,
  contenders: readonly Contender[],
  clients: number,
  generator: Generator,
  pace: Pace,
): Promise<ThroughputRow[]> {
  const targets = contenders.map(({ target }) => target)
  return rowsOf(kase, clients, contenders, await checkedBursts(kase, targets, clients, generator, pace))
}

/** Like measureBursts(). @throws Error if a target answers otherwise than it must */
export async function checkedBursts(
  kase: Case,
  targets: readonly Target[],
  clients: number,
  generator: Generator,
  pace: Pace,
): Promise<Burst[][]> {
  for (const target of targets) await verify(target, kase, clients)
  const bursts = await measureBursts(kase, targets, clients, generator, pace)
  for (const [i, target] of targets.entries()) for (const each of bursts[i]!) check(each, target, kase)
  return bursts
}

/** @param bursts of each contender, by round */
export function rowsOf(
  kase: Case,
  clients: number,
  contenders: readonly Contender[],
  bursts: Burst[][],
): ThroughputRow[] {
  return contenders.map((contender, i) => row(kase, clients, contenders, contender, bursts, i))
}

/** Loads the targets in turns, first to warm up. @returns the bursts of each target, by round */
export async function measureBursts(
  kase: Case,
  targets: readonly Target[],
  clients: number,
  generator: Generator,
  { rounds, seconds, warmUp }: Pace,
): Promise<Burst[][]> {
  const bursts: Burst[][] = targets.map(() => [])
  const warmUps = Math.ceil(warmUp / WARM_UP_SECONDS)
  for (let i = 0; i < warmUps; i++) {
    for (const target of targets)
      await burst(target, kase, clients, generator, Math.min(warmUp, WARM_UP_SECONDS))
  }
  for (let round = 0; round < rounds; round++) {
    const order = [...targets.keys()]
    if (round % 2 === 1) order.reverse()
    for (const i of order) bursts[i]!.push(await burst(targets[i]!, kase, clients, generator, seconds))
  }
  return bursts
}

function check({ errors, requests }: Burst, target: Target, kase: Case): void {
  if (errors > 0) throw new Error(`${target.name}, ${kase.name}: ${errors} errors`)
  if (requests === 0) throw new Error(`${target.name} answered no ${kase.name}`)
}

async function burst(
  target: Target,
  kase: Case,
  clients: number,
  generator: Generator,
  seconds: number,
): Promise<Burst> {
  const pids = target.pids()
  const before = cpuMilliseconds(pids)
  const frontendBefore = cpuMilliseconds(pids.slice(0, 1))
  const generatorBefore = childCpuMilliseconds()
  const load = kase.load(target)
  const headers = { ...target.headers, ...load.headers }
  const result = await generator.run({ ...load, headers, clients, seconds })
  const cpuMs = cpuMilliseconds(pids) - before
  const frontendMs = cpuMilliseconds(pids.slice(0, 1)) - frontendBefore
  const generatorCpuMs = childCpuMilliseconds() - generatorBefore
  await quiet(pids)
  return { ...result, cpuMs, frontendMs, generatorCpuMs }
}

/** Waits until a target has done with what the generator left: it would cost the next target. */
async function quiet(pids: readonly number[]): Promise<void> {
  const end = Date.now() + QUIET_LIMIT_MS
  for (let before = cpuMilliseconds(pids); Date.now() < end;) {
    await pause(QUIET_MS)
    const now = cpuMilliseconds(pids)
    if (now - before < QUIET_MS / 5) return
    before = now
  }
}

function row(
  kase: Case,
  clients: number,
  contenders: readonly Contender[],
  contender: Contender,
  all: Burst[][],
  i: number,
): ThroughputRow {
  const bursts = all[i]!
  const requestsPerSecond = median(bursts.map(rate))
  return {
    case: kase.name,
    clients,
    target: contender.target.name,
    requestsPerSecond,
    chunksPerSecond: kase.items === 0 ? undefined : requestsPerSecond * kase.items,
    p50: latency(bursts, 'p50'),
    p99: latency(bursts, 'p99'),
    cpuMicroseconds: perRequest(bursts, 'cpuMs'),
    frontendMicroseconds: perRequest(bursts, 'frontendMs'),
    ...compared(contenders, contender, all, bursts, contender.required?.(kase.name, clients)),
  }
}

function compared(
  contenders: readonly Contender[],
  { against }: Contender,
  all: Burst[][],
  bursts: Burst[],
  required: number | undefined,
): Pick<ThroughputRow, 'against' | 'ratio' | 'required' | 'ok'> {
  if (against === undefined) return {}
  const paired = (of: (burst: Burst) => number): number[] =>
    bursts.map((each, round) => share(of(each), of(all[against]![round]!)))
  const rounds = paired(rate)
  const middle = median(rounds)
  return {
    against: contenders[against]!.target.name,
    ratio: {
      median: middle,
      min: Math.min(...rounds),
      max: Math.max(...rounds),
      rounds,
      perCpuTime: paired((each) => each.requests / each.cpuMs),
    },
    required,
    ok: required === undefined ? undefined : middle >= required,
  }
}

/** Over all bursts, because the system counts in ticks of 10 ms. */
function perRequest(bursts: readonly Burst[], which: 'cpuMs' | 'frontendMs'): number {
  const sum = (of: (burst: Burst) => number): number => bursts.reduce((total, each) => total + of(each), 0)
  return (sum((burst) => burst[which]) * 1000) / sum((burst) => burst.requests)
}

/** Beside heavy work a target may answer nothing in a short burst. */
function share(one: number, other: number): number {
  return one === 0 && other === 0 ? 1 : one / other
}

const rate = (burst: Burst): number => burst.requests / burst.seconds

function latency(bursts: Burst[], which: 'p50' | 'p99'): number | undefined {
  const values = bursts.map((b) => b[which]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

import type { Generator, LoadResult } from '../generators/generator.ts'
import type { Options } from '../options.ts'
import { cpuMilliseconds } from '../processes.ts'
import type { Requirement } from '../requirements.ts'
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
  against?: string
  /** Median, minimum and maximum of the rounds' ratios. */
  ratio?: { median: number; min: number; max: number }
  required?: number
  ok?: boolean
}

type Burst = LoadResult & { cpuMs: number }

/** Measures one case for all contenders in turns, round after round, so that noise affects them equally. */
export async function measureThroughput(
  kase: Case,
  contenders: readonly Contender[],
  clients: number,
  generator: Generator,
  options: Options,
): Promise<ThroughputRow[]> {
  const bursts: Burst[][] = contenders.map(() => [])
  for (const { target } of contenders) {
    await verify(target, kase, clients)
    await burst(target, kase, clients, generator, options.warmUp)
  }
  for (let round = 0; round < options.rounds; round++) {
    const order = [...contenders.keys()]
    if (round % 2 === 1) order.reverse()
    for (const i of order) {
      bursts[i]!.push(await burst(contenders[i]!.target, kase, clients, generator, options.seconds))
    }
  }
  return contenders.map((contender, i) => row(kase, clients, contenders, contender, bursts, i))
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
  const result = await generator.run({ ...kase.load(target), clients, seconds })
  if (result.errors > 0) {
    throw new Error(`${target.name}, ${kase.name}, ${clients} clients: ${result.errors} errors`)
  }
  if (result.requests === 0) throw new Error(`${target.name} answered no ${kase.name}`)
  return { ...result, cpuMs: cpuMilliseconds(pids) - before }
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
    cpuMicroseconds: median(bursts.map((b) => (b.cpuMs * 1000) / b.requests)),
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
  const ratios = bursts.map((b, round) => rate(b) / rate(all[against]![round]!))
  const middle = median(ratios)
  return {
    against: contenders[against]!.target.name,
    ratio: { median: middle, min: Math.min(...ratios), max: Math.max(...ratios) },
    required,
    ok: required === undefined ? undefined : middle >= required,
  }
}

const rate = (burst: Burst): number => burst.requests / burst.seconds

function latency(bursts: Burst[], which: 'p50' | 'p99'): number | undefined {
  const values = bursts.map((b) => b[which]).filter((value) => value !== undefined)
  return values.length === 0 ? undefined : median(values)
}

import { cpuMilliseconds } from '../processes.ts'
import { median, quantile } from '../statistics.ts'
import type { Target } from '../targets/target.ts'

/** What one size cost in one round. */
export interface Sample {
  /** CPU time of frontend and workers per chunk or request, in microseconds. */
  cpu: number
  /** Milliseconds. */
  p50: number
  p99: number
}

/** What one size cost: medians over the rounds. */
export interface Point extends Sample {
  /** Streams, models, workers, or bytes. */
  size: number
  /** Of the rounds, in their order. */
  rounds: Sample[]
}

export type Curve = readonly Point[]

/** What happened in a span of time: the latencies of all chunks or requests, in milliseconds. */
export type Run = () => Promise<readonly number[]>

/** Measures one span of time. @throws Error when nothing was answered in it */
export async function sample(target: Target, run: Run): Promise<Sample> {
  const pids = target.pids()
  const before = cpuMilliseconds(pids)
  const latencies = await run()
  const cpuMs = cpuMilliseconds(pids) - before
  if (latencies.length === 0) throw new Error(`${target.name} answered nothing`)
  return {
    cpu: (cpuMs * 1000) / latencies.length,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
  }
}

/** Collects the samples of all sizes, round after round. */
export class Rounds {
  readonly #samples = new Map<number, Sample[]>()

  add(size: number, sample: Sample): void {
    this.#samples.set(size, [...(this.#samples.get(size) ?? []), sample])
  }

  get curve(): Curve {
    return [...this.#samples].map(([size, rounds]) => ({
      size,
      cpu: median(rounds.map(({ cpu }) => cpu)),
      p50: median(rounds.map(({ p50 }) => p50)),
      p99: median(rounds.map(({ p99 }) => p99)),
      rounds,
    }))
  }
}

/** How many times as much one size cost as another: the median of the rounds' ratios. */
export function growth(curve: Curve, from: number, to: number, of: keyof Sample): number {
  const [base, grown] = [from, to].map((size) => curve.find((point) => point.size === size)!.rounds)
  return median(grown!.map((sample, round) => sample[of] / base![round]![of]))
}

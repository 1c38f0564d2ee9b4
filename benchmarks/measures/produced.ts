import { performance } from 'node:perf_hooks'
import { COUNT } from '../ceilings/workload.ts'
import type { Target } from '../targets/target.ts'

/** What `count` reports about a run (model-store/count/runs.ts). */
export interface Produced {
  state: 'unknown' | 'running' | 'finished' | 'cancelled' | 'failed'
  items: number
  bytes: number
  /** Milliseconds since the epoch by the worker's clock. */
  lastItemAt?: number
  lastItemMsAgo?: number
  endedAt?: number
  endedMsAgo?: number
}

/** Milliseconds since the epoch, with fractions, by the same method as the worker. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

/** @param query `next` asks a gated run for its next item first */
export async function produced(
  target: Target,
  id: string,
  query: 'produced' | 'next' = 'produced',
): Promise<Produced> {
  const response = await fetch(`${target.restOrigin!}/predictions/${COUNT}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query, id }),
  })
  if (response.status !== 200) throw new Error(`count answers ${response.status}: ${await response.text()}`)
  return (await response.json()) as Produced
}

/**
 * Offset of the worker's clock to ours; 0 unless its answer lies outside the question's time span.
 * @param written when the answer was written, by the worker's clock
 */
export function clockOffset(written: number, asked: number, heard: number): number {
  if (written < asked) return written - asked
  return written > heard ? written - heard : 0
}

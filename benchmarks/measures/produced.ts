import { performance } from 'node:perf_hooks'
import { COUNT } from '../ceilings/workload.ts'
import type { Target } from '../targets/target.ts'

/** What `count` reports about a run (model-store/count/runs.ts). */
export interface Produced {
  state: 'unknown' | 'running' | 'finished' | 'cancelled' | 'failed'
  items: number
  bytes: number
  /** Milliseconds since the epoch by the worker's clock. */
  endedAt?: number
  endedMsAgo?: number
}

/** Milliseconds since the epoch, with fractions, by the same method as the worker. */
export function now(): number {
  return performance.timeOrigin + performance.now()
}

export async function produced(target: Target, id: string): Promise<Produced> {
  const response = await fetch(`${target.restOrigin!}/predictions/${COUNT}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: 'produced', id }),
  })
  if (response.status !== 200) throw new Error(`count answers ${response.status}: ${await response.text()}`)
  return (await response.json()) as Produced
}

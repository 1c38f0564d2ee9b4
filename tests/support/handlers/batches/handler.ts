import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'
import { opened } from '../gate.ts'

let batch = 0

/**
 * Takes `handler.batchMs` of its model-config.yaml for each batch and waits for the gates of its requests
 * (`until`). Each response names its batch; requests with `fail` get an error of their own.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const startedAt = performance.timeOrigin + performance.now()
  const bodies = requests.map(({ body }) => (body ?? {}) as { fail?: boolean; until?: string })
  const config = (context.modelConfig['handler'] ?? {}) as { batchMs?: number }
  batch += 1
  const told = { pid: process.pid, batch, size: requests.length, startedAt }
  await new Promise((resolve) => setTimeout(resolve, config.batchMs ?? 0))
  for (const { until } of bodies) if (until !== undefined) await opened(until)
  return bodies.map((body) => (body.fail === true ? new Error('as it was told') : told))
}

export function describe(): Record<string, unknown> {
  return { described: process.pid, batches: batch }
}

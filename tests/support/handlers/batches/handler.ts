import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'

let batch = 0

/**
 * Takes `handler.batchMs` of its model-config.yaml, or the longest `ms` of its requests, for each batch, and tells each of them which
 * batch it was in; those with `fail` get an error of their own.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const startedAt = performance.timeOrigin + performance.now()
  const bodies = requests.map(({ body }) => (body ?? {}) as { fail?: boolean; ms?: number })
  const config = (context.modelConfig['handler'] ?? {}) as { batchMs?: number }
  const ms = Math.max(...bodies.map((body) => body.ms ?? config.batchMs ?? 0))
  batch += 1
  const told = { pid: process.pid, batch, size: requests.length, startedAt }
  await new Promise((resolve) => setTimeout(resolve, ms))
  return bodies.map((body) => (body.fail === true ? new Error('as it was told') : told))
}

export function describe(): Record<string, unknown> {
  return { described: process.pid }
}

import { existsSync } from 'node:fs'
import type { Context, HandlerRequest, HandlerResponse } from 'torchserve-ts'

interface Body {
  name: string
  /** Items, one per step. Default: no end. */
  n?: number
  /** The first step after this gate (tests/support/gate.ts) was opened is its last. */
  until?: string
  /** Bytes of each item. Default: as long as its text. */
  size?: number
  /** The step that throws. */
  throwsAt?: number
  /** Milliseconds that each step with this request takes. Default 1. */
  ms?: number
}

const released: string[] = []
let steps = 0

/**
 * Gives each request `n` items, one per step. An item names its request, its worker and the requests of the
 * step.
 */
export async function handle(requests: HandlerRequest[], context: Context): Promise<HandlerResponse[]> {
  const bodies = requests.map(read)
  steps += 1
  await new Promise((resolve) => setTimeout(resolve, Math.max(...bodies.map(({ ms }) => ms ?? 1))))
  const ks = context.requestIds.map((id) => ((context.cache.get(id) as number | undefined) ?? 0) + 1)
  context.requestIds.forEach((id, i) => context.cache.set(id, ks[i]))
  const failing = bodies.find(({ throwsAt }, i) => throwsAt === ks[i])
  if (failing !== undefined) throw new Error(`${failing.name} throws`)
  context.stoppingCriteria = bodies.map(
    ({ n, until }, i) =>
      () =>
        ks[i] === n || (until !== undefined && existsSync(until)),
  )
  const together = bodies.map(({ name }) => name)
  return bodies.map(({ name, size }, i) => {
    const item = JSON.stringify({ name, k: ks[i], step: steps, pid: process.pid, together })
    return `${size === undefined ? item : item.padEnd(size)}\n`
  })
}

export function release(_requestId: string, context: Context): void {
  released.push(String(context.cache.size))
}

export function describe(context: Context): Record<string, unknown> {
  return { steps, cached: context.cache.size, released: released.length, pid: process.pid }
}

function read({ body, data }: HandlerRequest): Body {
  const given = body ?? data
  return (given instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(given)) : given) as Body
}

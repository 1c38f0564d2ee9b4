import { setTimeout as sleep } from 'node:timers/promises'
import type { Asked, AskOptions, Dialect } from '../../contract/dialect.ts'
import type { PortDialect } from '../../support/port-dialects.ts'
import type { Random } from '../../support/random.ts'
import type { Order } from '../ledger.ts'
import { GUEST, modelsOf, streamingModel } from '../models.ts'
import { rowOf, SOAK_DIALECTS } from './dialects.ts'
import { inTime, type Lane, newId } from './lane.ts'

/** The plan of the handler (tests/support/handlers/paced/pace.ts). */
interface Plan extends Order {
  stamped: true
  gap: number
  pad: number
  fail?: number
  exit?: number
}

/** How the client reads. */
type Manner = 'whole' | 'leaves' | 'stalls' | 'slow'

const WHOLE_BYTES = 1_000_000

/** Asks one model after the other for streams, in every dialect and manner, until the signal aborts. */
export async function streams(lane: Lane, signal: AbortSignal): Promise<void> {
  const clients = new Map<PortDialect, Dialect>()
  while (!signal.aborted) {
    const dialect = lane.random.pick(SOAK_DIALECTS)
    const client = clients.get(dialect) ?? dialect.at(lane.server.ports[dialect.port])
    clients.set(dialect, client)
    await one(lane, dialect, client)
    if (lane.random.chance(0.1)) closeAll(clients)
  }
  closeAll(clients)
}

async function one(lane: Lane, dialect: PortDialect, client: Dialect): Promise<void> {
  const { random, faults, excuses, callers, ledger } = lane
  const kind = random.pick(dialect.models)
  const name = random.pick(modelsOf(kind))
  const model = streamingModel(name)
  const manner: Manner = random.chance(0.6) ? 'whole' : random.pick(['leaves', 'leaves', 'stalls', 'slow'])
  const plan = draw(random, dialect.whole, manner)
  let exited: (() => void) | undefined
  if (random.chance(0.05)) plan.fail = random.integer(0, plan.n - 1)
  else if (random.chance(0.2) && (exited = faults.leaveToExit(model)) !== undefined)
    plan.exit = random.integer(0, plan.n - 1)
  const order = { id: plan.id, n: plan.n, breaksAfter: plan.fail ?? plan.exit }
  const began = performance.now()
  const how = options(random, dialect.whole, manner)
  const asked = await callers.ask(random, name, ({ headers }) => ask(client, name, plan, { ...how, headers }))
  // A model that is taken away refuses what comes, but finishes what it has.
  const mayFail = model !== GUEST || asked.end.kind === 'refused'
  ledger.stream(rowOf(dialect, kind), order, asked, mayFail && excuses.has(model, began))
  exited?.()
}

function draw(random: Random, isWhole: boolean, manner: Manner): Plan {
  const plan = { id: newId(), stamped: true as const }
  if (manner === 'stalls' && !isWhole) return { ...plan, n: 150, gap: 0, pad: 65_536 }
  const n = random.integer(1, 40)
  const pad = random.pick([0, 0, 100, 4_000, Math.floor(WHOLE_BYTES / n)])
  return { ...plan, n, pad, gap: random.pick([0, 0, 1, 5, 20]) }
}

function options(random: Random, isWhole: boolean, manner: Manner): AskOptions {
  switch (manner) {
    case 'whole':
      return {}
    case 'leaves':
      return isWhole || random.chance(0.5)
        ? { leaveAfterMs: random.integer(1, 300) }
        : { leaveAfter: random.integer(1, 20) }
    case 'stalls':
      return isWhole ? {} : { stallUntil: AbortSignal.timeout(random.integer(300, 3_000)) }
    case 'slow':
      return { pause: () => sleep(random.integer(1, 50)) }
  }
}

/** A connection that breaks before the response is a failure that the client sees. */
async function ask(client: Dialect, model: string, plan: Plan, how: AskOptions): Promise<Asked> {
  try {
    return await inTime(client.ask(model, JSON.stringify(plan), how))
  } catch (error) {
    return { items: [], end: { kind: 'failed', message: String(error) } }
  }
}

function closeAll(clients: Map<PortDialect, Dialect>): void {
  for (const client of clients.values()) client.close()
  clients.clear()
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { PortDialect } from '../../support/port-dialects.ts'
import type { Caller } from '../callers.ts'
import { isSteady, modelsOf } from '../models.ts'
import { SOAK_DIALECTS } from './dialects.ts'
import { inTime, type Lane, newId } from './lane.ts'

const BETWEEN_MS = { least: 10, most: 200 }
/** 401; TorchServe's own API says 400, as TorchServe does; over gRPC the statuses for it. */
const UNAUTHORIZED = /^(400|401|PERMISSION_DENIED|UNAUTHENTICATED): .*Token Authorization failed/s

/** Asks without a right, in every dialect, until the signal aborts; the answer must always say so. */
export async function strangers(lane: Lane, signal: AbortSignal): Promise<void> {
  const { random, callers, ledger } = lane
  while (!signal.aborted) {
    const dialect = random.pick(SOAK_DIALECTS)
    const model = random.pick(modelsOf(random.pick(dialect.models)))
    const isScoped = !isSteady(model) && random.chance(0.3)
    const caller = isScoped ? callers.scoped : callers.stranger(random)
    const told = await ask(lane, dialect, model, caller)
    // A key for other models is told what it would be told of a model that is not there.
    const isUnauthorized = UNAUTHORIZED.test(told)
    const isRight = isScoped ? told.startsWith(`${dialect.notFound}: `) && !isUnauthorized : isUnauthorized
    const what = `${dialect.name} ${model}: ${told}`
    ledger.answer(`no right: ${caller.kind}`, 'refused', isRight ? undefined : 'let in without a right', what)
    await sleep(random.integer(BETWEEN_MS.least, BETWEEN_MS.most))
  }
}

/** How it was refused; anything else when it was not. */
async function ask({ server }: Lane, dialect: PortDialect, model: string, caller: Caller): Promise<string> {
  const client = dialect.at(server.ports[dialect.port])
  const plan = JSON.stringify({ id: newId(), n: 1, gap: 0, pad: 0, stamped: true })
  try {
    const { end } = await inTime(client.ask(model, plan, { headers: caller.headers }))
    return end.kind === 'refused' ? `${end.status}: ${end.message}` : JSON.stringify(end)
  } catch (error) {
    return String(error)
  } finally {
    client.close()
  }
}

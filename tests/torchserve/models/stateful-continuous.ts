import { setTimeout as wait } from 'node:timers/promises'
import type { Context, HandlerRequest } from 'torchserve-ts'

/** A request under way. */
interface Run {
  readonly session: Session
  /** Items that still follow; undefined: the request is answered at once, without a stream. */
  left: number | undefined
}

interface Session {
  sum: number
  readonly runs: Set<Run>
}

const ITEMS = 10
const PAUSE_MS = 1000

/**
 * The handler of examples/stateful/sequence_continuous_batching: sums the numbers of each sequence. An odd
 * number (not the first of its sequence) is answered with a stream that repeats the sum, one item per second;
 * -1 ends the streams of the sequence, 0 the sequence itself. A request of a sequence that did not start here
 * fails, as in Python.
 */
export default class StatefulStreams {
  readonly #sessions = new Map<string, Session>()

  async handle(requests: HandlerRequest[], context: Context): Promise<number[]> {
    const items: number[] = []
    for (const [index, request] of requests.entries()) items.push(await this.#step(index, request, context))
    context.stoppingCriteria = requests.map((_, index) => () => goesOn(index, context))
    return items
  }

  release(requestId: string, context: Context): void {
    const run = context.cache.get(requestId) as Run | undefined
    run?.session.runs.delete(run)
  }

  async #step(index: number, request: HandlerRequest, context: Context): Promise<number> {
    context.setResponseHeader(index, context.sequenceHeaders.id, context.sequenceId(index) ?? '')
    const run = context.cache.get(context.requestIds[index]!) as Run | undefined
    if (run === undefined) return this.#begin(index, numberOf(request), context)
    await wait(PAUSE_MS)
    return run.session.sum
  }

  #begin(index: number, value: number, context: Context): number {
    const id = context.sequenceId(index) ?? ''
    const first = context.requestHeader(index, context.sequenceHeaders.start) !== undefined
    const session = first ? { sum: 0, runs: new Set<Run>() } : this.#sessions.get(id)
    if (session === undefined) throw new Error(`No session ${id} was started here`)
    if (value === 0) context.endSequence(index)
    if (value <= 0) endRuns(session)
    else session.sum += value
    if (value === 0) this.#sessions.delete(id)
    else this.#sessions.set(id, session)
    const run = { session, left: first || value < 0 || value % 2 === 0 ? undefined : ITEMS }
    session.runs.add(run)
    context.cache.set(context.requestIds[index]!, run)
    return value < 0 ? value : session.sum
  }
}

function endRuns(session: Session): void {
  for (const run of session.runs) if (run.left !== undefined) run.left = 0
}

/** True ends a stream with this item. */
function goesOn(index: number, context: Context): boolean | undefined {
  const run = context.cache.get(context.requestIds[index]!) as Run | undefined
  if (run?.left === undefined) return undefined
  return run.left-- === 0
}

/** `3`, or `{"input": 3}`. */
function numberOf(request: HandlerRequest): number {
  const value = request['data'] ?? request['body']
  const isObject = typeof value === 'object' && value !== null && 'input' in value
  return Number(String(isObject ? value.input : value))
}

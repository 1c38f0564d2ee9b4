import { PredictionException, type Context, type HandlerRequest } from 'torchserve-ts'
import { aborted } from '../aborted.ts'
import { opened } from '../gate.ts'

/** What a request of the test workflows asks for. */
interface Order {
  id: string
  /** Tries that fail before one succeeds. */
  failures?: number
  words?: string
}

const tries: Record<string, number> = {}
let initialized = 0

export function initialize(): void {
  initialized += 1
}

/** The start node gets the client's JSON decoded, every other one gets bytes. */
function order(requests: HandlerRequest[]): Order {
  const value = requests[0]!['body'] ?? requests[0]!['data']
  return (Buffer.isBuffer(value) ? JSON.parse(value.toString()) : value) as Order
}

/** Passes on what it got. */
export function pass(requests: HandlerRequest[]): unknown[] {
  return [JSON.stringify(order(requests))]
}

/** A second step after an invalid order. */
export async function after(requests: HandlerRequest[]): Promise<unknown[]> {
  await Promise.resolve()
  return [`after ${String(requests[0]!['body']).length}`]
}

export function left(requests: HandlerRequest[]): unknown[] {
  return [{ left: order(requests).words }]
}

/** Yields its words one by one. As the input of another node they are joined. */
export async function* right(requests: HandlerRequest[]): AsyncGenerator<unknown[]> {
  for (const word of order(requests).words!.split(' ')) yield [word]
  await Promise.resolve()
}

export function join(requests: HandlerRequest[]): unknown[] {
  const parts = Object.entries(requests[0]!).map(([name, data]) => `${name}=${String(data)}`)
  return [parts.join(';')]
}

/** Streams words; `!` among them throws. */
export async function* speak(requests: HandlerRequest[], context: Context): AsyncGenerator<unknown[]> {
  context.setResponseContentType(0, 'text/plain')
  context.setResponseHeader(0, 'x-spoken', 'yes')
  for (const word of order(requests).words!.split(' ')) {
    await Promise.resolve()
    if (word === '!') throw new Error('Cannot say that')
    yield [word]
  }
}

export function flaky(requests: HandlerRequest[]): unknown[] {
  const { id, failures = 0 } = order(requests)
  tries[id] = (tries[id] ?? 0) + 1
  if (tries[id] <= failures) throw new Error(`not yet: ${id}`)
  return [JSON.stringify({ id })]
}

export function refuse(): unknown[] {
  throw new PredictionException('Never', 400)
}

/** Waits until its request is cancelled. */
export async function sleep(_requests: HandlerRequest[], context: Context): Promise<unknown[]> {
  await aborted(context.signal)
  return ['']
}

/** Streams `begun`, then `end` when the gate is open that the words name (tests/support/gate.ts). */
export async function* gated(requests: HandlerRequest[]): AsyncGenerator<unknown[]> {
  yield ['begun']
  await opened(order(requests).words!)
  yield ['end']
}

export function answer404(_requests: HandlerRequest[], context: Context): unknown[] {
  context.setResponseStatus(0, 404, 'Nothing')
  return ['nothing']
}

/** Returns where it runs and what it got. */
export function about(requests: HandlerRequest[], context: Context): unknown[] {
  return [
    {
      pid: process.pid,
      initialized,
      requestId: context.requestIds[0],
      animal: context.requestHeader(0, 'X-Animal'),
      parts: Object.keys(requests[0]!),
    },
  ]
}

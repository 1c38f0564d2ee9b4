import { PredictionException, type Context, type HandlerRequest } from 'torchserve-ts'

/** Functions of the test workflows. What they saw is asked for with the function `seen`. */
const calls: Record<string, string[]> = {}
let initialized = 0

interface Order {
  id: string
  /** Tries that fail before one succeeds. */
  failures?: number
  words?: string
}

export function initialize(context: Context): void {
  if (context.properties.modelDir !== '') initialized += 1
}

function order(requests: HandlerRequest[]): Order {
  const [request] = requests
  const value = request!['body'] ?? request!['data']
  return (Buffer.isBuffer(value) ? JSON.parse(value.toString()) : value) as Order
}

function note(id: string, what: string): number {
  const list = (calls[id] ??= [])
  list.push(what)
  return list.length
}

/** Passes on what it got. */
export function pass(requests: HandlerRequest[]): unknown[] {
  note(order(requests).id, 'pass')
  return [JSON.stringify(order(requests))]
}

/** A plain function that is a second step. */
export async function after(requests: HandlerRequest[]): Promise<unknown[]> {
  note('after', 'after')
  await Promise.resolve()
  return [`after ${String(requests[0]!['body']).length}`]
}

export function left(requests: HandlerRequest[]): unknown[] {
  return [{ left: order(requests).words }]
}

/** Yields its words one by one: as the input of another node they are joined. */
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
  const { id, words = '' } = order(requests)
  note(id, 'speak')
  context.setResponseContentType(0, 'text/plain')
  context.setResponseHeader(0, 'x-spoken', 'yes')
  for (const word of words.split(' ')) {
    await Promise.resolve()
    if (word === '!') throw new Error('Cannot say that')
    yield [word]
  }
}

export function flaky(requests: HandlerRequest[]): unknown[] {
  const { id, failures = 0 } = order(requests)
  if (note(id, 'try') <= failures) throw new Error(`not yet: ${id}`)
  return [JSON.stringify({ id })]
}

export function refuse(requests: HandlerRequest[]): unknown[] {
  note(order(requests).id, 'refuse')
  throw new PredictionException('Never', 400)
}

/** Waits until nobody wants it any more. */
export async function sleep(requests: HandlerRequest[], context: Context): Promise<unknown[]> {
  const { id } = order(requests)
  note(id, 'sleep')
  await new Promise<void>((resolve) => {
    context.signal.addEventListener('abort', () => {
      note(id, 'woken')
      resolve()
    })
  })
  return ['']
}

export function answer404(_requests: HandlerRequest[], context: Context): unknown[] {
  context.setResponseStatus(0, 404, 'Nothing')
  return ['nothing']
}

/** Where it runs and what it was sent. */
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

export function seen(requests: HandlerRequest[]): unknown[] {
  return [calls[order(requests).id] ?? []]
}

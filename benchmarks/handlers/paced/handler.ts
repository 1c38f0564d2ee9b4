import { sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'

/**
 * Streams that never end. Each gets one item at once. Those that ask for `paced` then get items in turn, at
 * a rate that does not depend on their number: every 5 ms the next ten streams get one item each.
 */

const BYTES = 100
const PERIOD_MS = 5
const PER_PERIOD = 10

interface Run {
  readonly context: Context
  place: number
}

const ring: Run[] = []
let next = 0
let timer: NodeJS.Timeout | undefined

export async function handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
  const paced = Buffer.from(requests[0]!['body'] as Uint8Array).toString() === 'paced'
  const run = { context, place: -1 }
  await send(run)
  if (paced) join(run)
  await ended(context.requestSignal(0))
  if (paced) leave(run)
  return ['']
}

/** An item says when it was made, so that its reader knows how long it took. */
function send({ context }: Run): Promise<void> {
  const made = performance.timeOrigin + performance.now()
  const item = Buffer.from(`${made.toFixed(3).padEnd(BYTES - 1)}\n`)
  return sendIntermediatePredictResponse([item], context.requestIds, 'Intermediate', 200, context)
}

function ended(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

function join(run: Run): void {
  run.place = ring.push(run) - 1
  timer ??= setInterval(tick, PERIOD_MS)
}

/** The last one takes its place. */
function leave(run: Run): void {
  const last = ring.pop()!
  if (last === run) return
  ring[run.place] = last
  last.place = run.place
}

function tick(): void {
  for (let i = 0; i < PER_PERIOD && ring.length > 0; i += 1) {
    next = (next + 1) % ring.length
    send(ring[next]!).catch(() => undefined) // its client has just left
  }
}

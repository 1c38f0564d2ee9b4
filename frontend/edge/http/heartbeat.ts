/**
 * A stream that says something when it has been silent for long, so that nobody between takes it for dead.
 */
export interface Beating {
  /** Milliseconds of silence. */
  readonly heartbeatMs: number
  /** performance.now() of the last bytes. */
  lastWrite: number
  /** It is not asked any more. */
  readonly ended: boolean
  beat(): void
}

const LOOK_MS = 250

/** All open streams share one timer, which runs while there are any: a stream costs a place in this set. */
const beating = new Set<Beating>()
let timer: NodeJS.Timeout | undefined

/** Watches a stream until it has ended. */
export function beatFor(stream: Beating): void {
  stream.lastWrite = performance.now()
  beating.add(stream)
  timer ??= setInterval(look, LOOK_MS).unref()
}

function look(): void {
  const now = performance.now()
  for (const stream of beating) {
    if (stream.ended) beating.delete(stream)
    else if (now - stream.lastWrite >= stream.heartbeatMs) stream.beat()
  }
  if (beating.size > 0) return
  clearInterval(timer)
  timer = undefined
}

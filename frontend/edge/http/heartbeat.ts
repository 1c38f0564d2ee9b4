/** A stream that sends a heartbeat after a long silence, so that proxies do not close it. */
export interface Beating {
  /** Milliseconds of silence before a heartbeat. */
  readonly heartbeatMs: number
  /** performance.now() of the last bytes. */
  lastWrite: number
  /** The stream has ended, so it is removed. */
  readonly ended: boolean
  beat(): void
}

const LOOK_MS = 250

/** All open streams share one timer, which runs while there are any. A stream costs one entry in this set. */
const beating = new Set<Beating>()
let timer: NodeJS.Timeout | undefined

/** Sends heartbeats for a stream until it has ended. */
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

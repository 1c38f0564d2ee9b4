import type { Target } from '../targets/target.ts'
import type { Figure } from './figure.ts'
import { pause } from './figure.ts'
import { distribution, LATENCY_SAMPLES } from './latency.ts'
import { clockOffset, now, produced } from './produced.ts'
import { openGrpc, openHttp, type Opener } from './streams.ts'

/** Milliseconds; the stream contract allows 100. */
const LIMITS = { p50: 10, p90: 25 }

/** Time from a client's disconnect to the end of the handler's run, as `count` records it. */
export async function measureDisconnect(target: Target): Promise<Figure[]> {
  const name = "disconnect to handler's stop"
  return [
    ...distribution('disconnect', `HTTP ${name}`, await stops(target, openHttp, 'http'), LIMITS),
    ...distribution('disconnect', `gRPC ${name}`, await stops(target, openGrpc, 'grpc'), LIMITS),
  ]
}

async function stops(target: Target, open: Opener, prefix: string): Promise<number[]> {
  const milliseconds: number[] = []
  for (let i = -5; i < LATENCY_SAMPLES; i++) {
    const id = `${prefix}${i}`
    const stream = await open(target, JSON.stringify({ id, n: 1_000_000, size: 100, delay: 5 }))
    const left = now()
    stream.leave()
    const taken = (await endOf(target, id)) - left
    if (i >= 0) milliseconds.push(taken) // the first ones are warm-up
  }
  return milliseconds
}

/** End of the run, by this process's clock. */
async function endOf(target: Target, id: string): Promise<number> {
  const deadline = now() + 15_000
  while (now() < deadline) {
    const asked = now()
    const run = await produced(target, id)
    if (run.endedAt !== undefined)
      return run.endedAt - clockOffset(run.endedAt + run.endedMsAgo!, asked, now())
    await pause(2)
  }
  throw new Error(`The handler still runs 15 s after its client left (${id})`)
}

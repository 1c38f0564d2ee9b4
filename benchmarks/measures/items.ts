import type { Target } from '../targets/target.ts'
import type { Figure } from './figure.ts'
import { distribution, LATENCY_SAMPLES } from './latency.ts'
import { clockOffset, now, produced } from './produced.ts'
import { openGrpc, openHttp, type Opener } from './streams.ts'

/** Milliseconds. */
const LIMITS = { p50: 5, p90: 15 }

/** Time from when the handler made an item until it arrives at the client, on an otherwise idle stream. */
export async function measureItems(target: Target): Promise<Figure[]> {
  return [
    ...distribution('items', 'HTTP item to its client', await latencies(target, openHttp, 'http'), LIMITS),
    ...distribution('items', 'gRPC item to its client', await latencies(target, openGrpc, 'grpc'), LIMITS),
  ]
}

async function latencies(target: Target, open: Opener, prefix: string): Promise<number[]> {
  const id = `${prefix}-items`
  let arrivedAt = 0
  let wake = (): void => undefined
  const onData = (): void => {
    arrivedAt = now()
    wake()
  }
  const stream = await open(target, JSON.stringify({ id, n: 1_000_000, gated: true }), onData)
  const milliseconds: number[] = []
  for (let i = -5; i < LATENCY_SAMPLES; i++) {
    const arrived = new Promise<void>((resolve) => (wake = resolve))
    await Promise.all([produced(target, id, 'next'), arrived])
    const asked = now()
    const { lastItemAt, lastItemMsAgo } = await produced(target, id)
    const offset = clockOffset(lastItemAt! + lastItemMsAgo!, asked, now())
    if (i >= 0) milliseconds.push(arrivedAt - (lastItemAt! - offset)) // the first ones warm the path up
  }
  stream.leave()
  return milliseconds
}

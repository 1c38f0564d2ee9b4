import type { Options } from '../options.ts'
import { quantile } from '../statistics.ts'
import type { Target } from '../targets/target.ts'
import type { Figure } from './figure.ts'
import { pause } from './figure.ts'
import { now, produced, type Produced } from './produced.ts'
import { openGrpc, openHttp, type Opener } from './streams.ts'

/** Time from a client's disconnect to the end of the handler's run, as `count` records it. */
export async function measureDisconnect(target: Target, options: Options): Promise<Figure[]> {
  const samples = options.rounds * 40
  return [
    ...figures('HTTP', await stops(target, openHttp, 'http', samples)),
    ...figures('gRPC', await stops(target, openGrpc, 'grpc', samples)),
  ]
}

function figures(protocol: string, milliseconds: number[]): Figure[] {
  const name = `${protocol} disconnect to handler's stop`
  const figure = (what: string, q: number): Figure => ({
    measure: 'disconnect',
    name: `${name}, ${what} of ${milliseconds.length}`,
    value: quantile(milliseconds, q),
    unit: 'ms',
  })
  return [{ ...figure('median', 0.5), atMost: 10 }, figure('p99', 0.99)]
}

async function stops(target: Target, open: Opener, prefix: string, samples: number): Promise<number[]> {
  const milliseconds: number[] = []
  for (let i = -5; i < samples; i++) {
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
    if (run.endedAt !== undefined) return run.endedAt - clockOffset(run, asked, now())
    await pause(2)
  }
  throw new Error(`The handler still runs 15 s after its client left (${id})`)
}

/** Offset of the worker's clock to ours; 0 unless its answer lies outside the question's time span. */
function clockOffset(run: Produced, asked: number, heard: number): number {
  const written = run.endedAt! + run.endedMsAgo!
  if (written < asked) return written - asked
  return written > heard ? written - heard : 0
}

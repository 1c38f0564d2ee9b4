import { Rounds, sample, type Curve } from './curve.ts'
import { ClosedLoop } from './closed-loop.ts'
import type { GrowthOptions } from './options.ts'
import type { GrowthServer } from './servers.ts'

/** One size: a server, its clients, and the bytes of their next request. */
export interface Contestant {
  size: number
  server: GrowthServer
  clients: number
  next: () => Buffer
  /** Chunks of an answer, of which the cost is told. Default 1. */
  chunks?: number
}

/** Measures all sizes in turns, so that other work on the machine affects them equally. */
export async function measureInTurns(
  contestants: readonly Contestant[],
  { rounds, seconds }: Pick<GrowthOptions, 'rounds' | 'seconds'>,
): Promise<Curve> {
  const collected = new Rounds()
  for (let round = 0; round <= rounds; round += 1) {
    const order = round % 2 === 1 ? contestants : contestants.toReversed()
    for (const contestant of order) {
      const taken = await burst(contestant, seconds)
      if (round > 0) collected.add(contestant.size, taken) // the first one is warm-up
    }
  }
  return collected.curve.toSorted((a, b) => a.size - b.size)
}

async function burst({ server, clients, next, chunks = 1 }: Contestant, seconds: number) {
  const loop = await ClosedLoop.start(server.restOrigin, clients, next)
  try {
    await loop.run(WARM_UP_SECONDS)
    const taken = await sample(server, () => loop.run(seconds))
    return { ...taken, cpu: taken.cpu / chunks }
  } finally {
    loop.stop()
  }
}

/** Every client has a request under way, and the first ones are answered. */
const WARM_UP_SECONDS = 0.3

/** Stops them all. */
export async function stopServers(servers: readonly GrowthServer[]): Promise<void> {
  await Promise.all(servers.map((server) => server.stop()))
}

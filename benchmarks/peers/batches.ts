import { ClosedLoop, postBytes } from '../growth/closed-loop.ts'
import type { Target } from '../targets/target.ts'
import type { PeerOptions } from './options.ts'
import { BATCH_SIZES, type BatchModel, type Peer } from './peer.ts'
import { spread, type Spread } from './spread.ts'

const CLIENTS = [1, 4, 12, 32] as const
const HANDLER_MS = [10, 50, 100] as const
const WARM_UP_SECONDS = 0.3

/** torchserve-ts beside one peer, with a handler of so many milliseconds for each batch. */
export interface BatchRow {
  target: string
  batchSize: number
  handlerMs: number
  clients: number
  ours: Spread
  theirs: Spread
  /** Of paired rounds. */
  ratio: Spread
  /** Share of requests whose batch was full, of all rounds. */
  oursFull: number
  theirsFull: number
}

interface Sample {
  perSecond: number
  /** Batch sizes of all answers. */
  sizes: number[]
}

/** Loads torchserve-ts and a peer in turns. @param found is called with each row */
export async function measureBatches(
  ours: Peer,
  peer: Peer,
  options: PeerOptions,
  found: (row: BatchRow) => void,
): Promise<void> {
  const models = BATCH_SIZES.map((size): BatchModel => `batch${size}`)
  const targets = [await ours.startBatches!(models)]
  try {
    targets.push(await peer.startBatches!(models))
    for (const batchSize of BATCH_SIZES)
      for (const handlerMs of HANDLER_MS)
        for (const clients of CLIENTS) {
          const samples: [Sample[], Sample[]] = [[], []]
          for (let round = 0; round < options.rounds; round++)
            for (const i of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const))
              samples[i].push(
                await sample(targets[i]!, batchSize, { clients, handlerMs, seconds: options.seconds }),
              )
          found({ target: peer.title, batchSize, handlerMs, clients, ...figures(samples, batchSize) })
        }
  } finally {
    for (const target of targets) await target.stop()
  }
}

async function sample(
  target: Target,
  batchSize: number,
  { clients, handlerMs, seconds }: { clients: number; handlerMs: number; seconds: number },
): Promise<Sample> {
  const request = postBytes(`/predictions/batch${batchSize}`, Buffer.from(JSON.stringify({ ms: handlerMs })))
  const sizes: number[] = []
  const answered = (last: Buffer): void => void sizes.push(Number(/\d+$/.exec(last.toString('latin1'))?.[0]))
  const loop = await ClosedLoop.start(target.restOrigin!, clients, () => request, answered)
  try {
    await loop.run(WARM_UP_SECONDS)
    sizes.length = 0
    // Answers come in batches, so a count would depend on which of them the time just includes.
    const latencies = await loop.run(seconds)
    const perSecond = (clients * latencies.length * 1000) / latencies.reduce((sum, ms) => sum + ms, 0)
    return { perSecond, sizes: [...sizes] }
  } finally {
    loop.stop()
  }
}

function figures([ours, theirs]: [Sample[], Sample[]], batchSize: number) {
  const rates = (samples: Sample[]): number[] => samples.map(({ perSecond }) => perSecond)
  const full = (samples: Sample[]): number => {
    const sizes = samples.flatMap((each) => each.sizes)
    return sizes.filter((size) => size === batchSize).length / sizes.length
  }
  const ratio = spread(rates(ours).map((rate, i) => rate / theirs[i]!.perSecond))
  return {
    ...{ ours: spread(rates(ours)), theirs: spread(rates(theirs)), ratio },
    ...{ oursFull: full(ours), theirsFull: full(theirs) },
  }
}

import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import { postBytes } from './closed-loop.ts'
import { growth } from './curve.ts'
import type { GrowthOptions } from './options.ts'
import { costPanels, type Result } from './result.ts'
import { modelFolder, untilReady } from './servers.ts'
import { measureInTurns } from './side-by-side.ts'

const SIZES = [1, 10, 100, 1_000, 10_000]
const CONFIG = {
  max_connections: 24_000,
}

/** Cost of a request while so many wait in the queue of one worker: each answer makes room for the next. */
export async function growQueue(options: GrowthOptions): Promise<Result> {
  const folder = modelFolder(ECHO, { minWorkers: 1, maxWorkers: 1, jobQueueSize: 10_000 })
  const server = await options.starter.start({ models: { [ECHO]: folder }, config: CONFIG })
  try {
    await untilReady(server, [ECHO], 20_000)
    const request = postBytes(`/predictions/${ECHO}`, Buffer.from(ECHO_BODY))
    const curve = await measureInTurns(
      SIZES.map((size) => ({ size, server, clients: size, next: () => request })),
      options,
    )
    return {
      curves: { queue: curve },
      figures: [
        {
          measure: 'queue',
          name: 'CPU of a request, a queue of 10,000 to one of 100',
          value: growth(curve, 100, 10_000, 'cpu'),
          unit: 'x',
        },
      ],
      plots: [
        {
          file: 'queue',
          title: 'A queue',
          panels: costPanels('request', 'requests that wait for one worker', curve),
        },
      ],
    }
  } finally {
    await server.stop()
  }
}

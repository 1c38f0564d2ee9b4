import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import { postBytes } from './closed-loop.ts'
import type { GrowthOptions } from './options.ts'
import { costPanels, type Result } from './result.ts'
import { echoFolder, type GrowthServer, untilReady } from './servers.ts'
import { measureInTurns, stopServers } from './side-by-side.ts'

const SIZES = [1, 2, 4, 8, 16]
const CLIENTS = 32

/** Cost of a request to a model with 1 to 16 workers. */
export async function growWorkers(options: GrowthOptions): Promise<Result> {
  const servers: GrowthServer[] = []
  try {
    for (const size of SIZES) {
      const server = await options.starter.start({ models: { [ECHO]: echoFolder(size) } })
      servers.push(server)
      await untilAllReady(server, ECHO)
    }
    const request = postBytes(`/predictions/${ECHO}`, Buffer.from(ECHO_BODY))
    const curve = await measureInTurns(
      SIZES.map((size, i) => ({ size, server: servers[i]!, clients: CLIENTS, next: () => request })),
      options,
    )
    return {
      curves: { workers: curve },
      figures: [],
      plots: [
        { file: 'workers', title: 'Workers', panels: costPanels('request', 'workers of one model', curve) },
      ],
    }
  } finally {
    await stopServers(servers)
  }
}

/** Resolves when all workers of the model are loaded. */
export async function untilAllReady(server: GrowthServer, model: string): Promise<void> {
  await untilReady(server, [model], 60_000)
  const deadline = performance.now() + 60_000
  for (;;) {
    const response = await fetch(`${server.managementOrigin}/models/${model}`)
    const [{ workers }] = (await response.json()) as [{ workers: { status: string }[] }]
    if (workers.every(({ status }) => status === 'READY')) return
    if (performance.now() > deadline) throw new Error(`The workers of ${model} are not ready in time`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

import { COUNT, countBody } from '../ceilings/workload.ts'
import { postBytes } from './closed-loop.ts'
import type { GrowthOptions } from './options.ts'
import { bytesName, costPanels, type Result } from './result.ts'
import { modelFolder, untilReady } from './servers.ts'
import { measureInTurns } from './side-by-side.ts'

/** Bytes of an item, and items of a stream: large ones are fewer. */
const SIZES: readonly (readonly [number, number])[] = [
  [10, 100],
  [100, 100],
  [1024, 100],
  [8 * 1024, 100],
  [64 * 1024, 100],
  [256 * 1024, 32],
  [1024 * 1024, 16],
]
const CLIENTS = 8

/** Cost of a chunk of 10 bytes to 1 MB, in streams that are made as fast as their clients read them. */
export async function growItems(options: GrowthOptions): Promise<Result> {
  const folder = modelFolder(COUNT, { minWorkers: 1, maxWorkers: 1, asyncCommunication: true })
  const server = await options.starter.start({ models: { [COUNT]: folder } })
  try {
    await untilReady(server, [COUNT], 20_000)
    const curve = await measureInTurns(
      SIZES.map(([size, chunks]) => {
        const request = postBytes(`/predictions/${COUNT}`, Buffer.from(countBody(chunks, size, 0)))
        return { size, server, clients: CLIENTS, next: () => request, chunks }
      }),
      options,
    )
    const panels = costPanels('chunk', 'bytes of an item', curve, bytesName)
    panels[1]!.title = 'Time of a whole stream (100 items; 32 of 256 KB, 16 of 1 MB)'
    const perMegabyte = curve
      .filter(({ size }) => size >= 1024)
      .map(({ size, cpu }) => ({ x: size, y: cpu / (size / 1024 / 1024) / 1000 }))
    panels.push({
      title: 'CPU time per megabyte',
      x: { label: 'bytes of an item', name: bytesName },
      y: { label: 'ms per MB' },
      lines: [{ name: 'frontend and worker', points: perMegabyte }],
    })
    return { curves: { items: curve }, figures: [], plots: [{ file: 'items', title: 'Items', panels }] }
  } finally {
    await server.stop()
  }
}

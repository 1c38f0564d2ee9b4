import { postBytes } from './closed-loop.ts'
import type { GrowthOptions } from './options.ts'
import { bytesName, costPanels, type Result } from './result.ts'
import { modelFolder, untilReady } from './servers.ts'
import { measureInTurns } from './side-by-side.ts'

const MEGABYTE = 1024 * 1024
const SIZES = [10, 1024, 64 * 1024, MEGABYTE, 4 * MEGABYTE, 16 * MEGABYTE, 64 * MEGABYTE]
/** The defaults are 6.5 MB. */
const CONFIG = { max_request_size: 65 * MEGABYTE }
/** Fewer bytes than this cost so little that a server handles many at once. */
const SMALL = MEGABYTE

/** Cost of a request with a body of 10 bytes to 64 MB, which the handler answers with its length. */
export async function growBodies(options: GrowthOptions): Promise<Result> {
  const models = { length: modelFolder('length', { minWorkers: 1, maxWorkers: 1 }) }
  const server = await options.starter.start({ models, config: CONFIG })
  try {
    await untilReady(server, ['length'], 20_000)
    const curve = await measureInTurns(
      SIZES.map((size) => {
        const request = postBytes('/predictions/length', Buffer.alloc(size, 'x'))
        return { size, server, clients: size < SMALL ? 8 : 2, next: () => request }
      }),
      options,
    )
    const perMegabyte = curve
      .filter(({ size }) => size >= 64 * 1024)
      .map(({ size, cpu }) => ({ x: size, y: cpu / (size / MEGABYTE) / 1000 }))
    const panels = costPanels('request', 'bytes of its body', curve, bytesName)
    panels.push({
      title: 'CPU time per megabyte of a large body',
      x: { label: 'bytes of the body', name: bytesName },
      y: { label: 'ms per MB' },
      lines: [{ name: 'frontend and worker', points: perMegabyte }],
    })
    return {
      curves: { bodies: curve },
      figures: [
        {
          measure: 'bodies',
          name: 'CPU per byte, a body of 64 MB to one of 1 MB',
          value: perMegabyte.at(-1)!.y / perMegabyte.find(({ x }) => x === MEGABYTE)!.y,
          unit: 'x',
        },
      ],
      plots: [{ file: 'bodies', title: 'Request bodies', panels }],
    }
  } finally {
    await server.stop()
  }
}

import type { Socket } from 'node:net'
import { COUNT, STREAM_BODY } from '../ceilings/workload.ts'
import type { Options } from '../options.ts'
import { fileURLToPath } from 'node:url'
import { median } from '../statistics.ts'
import { startBareHttp } from '../targets/ceilings.ts'
import { oursCommand, startWith } from '../targets/ours.ts'
import type { Target } from '../targets/target.ts'
import { postAndRead } from '../wire.ts'
import type { Figure } from './figure.ts'
import { idleStream } from './idle-stream.ts'
import { steadyResidentBytes } from './resident.ts'

const STREAMS = 1000
const WARM_UP_REQUESTS = 1000
const MODELS = [COUNT]
/**
 * V8 doubles its young generation at a moment of its own, by up to 16 MB, which would count as memory of the
 * streams or not. So it has its full size from the start, and garbage is collected before each reading.
 */
const NODE_ARGS = [
  ...['--min-semi-space-size=16', '--max-semi-space-size=16', '--expose-gc'],
  ...['--import', fileURLToPath(new URL('../../tests/support/heap-probe.mjs', import.meta.url))],
]

/** Memory of frontend and worker per idle stream, next to bare node:http; fresh servers for each repeat. */
export async function measureMemory(options: Options): Promise<Figure[]> {
  const bare: number[] = []
  const ours: number[] = []
  for (let i = 0; i < options.repeats; i++) {
    bare.push(await perStream(() => startBareHttp(NODE_ARGS)))
    ours.push(await perStream(start))
  }
  const name = `RSS growth per idle stream at ${STREAMS}`
  const figure = (name: string, value: number): Figure => ({ measure: 'memory', name, value, unit: 'KB' })
  const ratio = median(ours.map((value, i) => value / bare[i]!))
  return [
    figure(`${name}, node:http`, median(bare)),
    figure(`${name}, torchserve-ts`, median(ours)),
    { measure: 'memory', name: `${name}, ratio`, value: ratio, unit: 'x', atMost: 1.5 },
  ]
}

async function start(): Promise<Target> {
  const command = await oursCommand({ models: MODELS })
  return startWith({ ...command, args: [...NODE_ARGS, ...command.args] }, MODELS)
}

async function residentAfterCollection(target: Target): Promise<number> {
  process.kill(target.pids()[0]!, 'SIGUSR2')
  return steadyResidentBytes(target)
}

/** Kilobytes per stream, for a server that was just started and warmed up. */
async function perStream(start: () => Promise<Target>): Promise<number> {
  const target = await start()
  const sockets: Socket[] = []
  try {
    const url = `${target.restOrigin!}/predictions/${COUNT}`
    for (let i = 0; i < WARM_UP_REQUESTS; i++) await postAndRead(url, STREAM_BODY)
    const before = await residentAfterCollection(target)
    for (let i = 0; i < STREAMS; i++) sockets.push(await idleStream(url))
    return ((await residentAfterCollection(target)) - before) / STREAMS / 1024
  } finally {
    for (const socket of sockets) socket.destroy()
    await target.stop()
  }
}

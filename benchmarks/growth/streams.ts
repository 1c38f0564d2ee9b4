import { fileURLToPath } from 'node:url'
import type { Figure } from '../measures/figure.ts'
import { steadyResidentBytes } from '../measures/resident.ts'
import { cpuMilliseconds } from '../processes.ts'
import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import { ClosedLoop, postBytes } from './closed-loop.ts'
import { type Curve, growth, Rounds, sample } from './curve.ts'
import type { GrowthOptions } from './options.ts'
import { OpenStreams, PACED } from './open-streams.ts'
import { costPanels, type Result } from './result.ts'
import { echoFolder, type GrowthServer, untilReady } from './servers.ts'

const SIZES = [1, 10, 100, 1_000, 10_000]
const MOST = SIZES.at(-1)!
const FOLDER = fileURLToPath(new URL('../handlers/paced', import.meta.url))
/** One client opens all streams; without these keys it would get a half of at most 8,192. */
const CONFIG = {
  max_connections: 24_000,
}
/** Clients of `echo`, while the streams are open. */
const CLIENTS = 8
const IDLE_SECONDS = 5

/** Cost of a chunk, and of another model's requests, with 1 to 10,000 open streams. */
export async function growStreams(options: GrowthOptions): Promise<Result> {
  const chunks = await eachRound(options, 'paced', (streams) => () => streams.run(options.seconds))
  const requests = await requestCosts(options)
  const idle = await idleStreams(options)
  const ratio = growth(chunks, 10, 1_000, 'cpu')
  return {
    curves: { 'streams: chunk': chunks, 'streams: request': requests, 'streams: memory': idle.curve },
    figures: [
      {
        measure: 'streams',
        name: 'CPU of a chunk, 1,000 streams to 10',
        value: ratio,
        unit: 'x',
        atMost: 1.3,
      },
      ...idle.figures,
    ],
    plots: [
      { file: 'chunks-by-streams', title: 'One chunk', panels: costPanels('chunk', 'open streams', chunks) },
      {
        file: 'requests-by-idle-streams',
        title: 'One echo request',
        panels: costPanels('echo request', 'idle streams', requests),
      },
      { file: 'memory-by-streams', title: 'Memory', panels: [idle.panel] },
    ],
  }
}

async function startStreams({ starter }: GrowthOptions): Promise<GrowthServer> {
  const server = await starter.start({ models: { [PACED]: FOLDER, [ECHO]: echoFolder(1) }, config: CONFIG })
  await untilReady(server, [ECHO], 20_000)
  const first = new OpenStreams(server, 'idle')
  await first.grow(1)
  first.close()
  return server
}

async function eachRound(
  options: GrowthOptions,
  kind: 'paced' | 'idle',
  run: (streams: OpenStreams, server: GrowthServer) => () => Promise<readonly number[]>,
): Promise<Curve> {
  const server = await startStreams(options)
  const rounds = new Rounds()
  try {
    for (let round = 0; round <= options.rounds; round += 1) {
      const streams = new OpenStreams(server, kind)
      for (const size of SIZES) {
        await streams.grow(size)
        await settle()
        const taken = await sample(server, run(streams, server))
        if (round > 0) rounds.add(size, taken) // the first one is warm-up
      }
      streams.close()
      await settle()
    }
    return rounds.curve
  } finally {
    await server.stop()
  }
}

async function requestCosts(options: GrowthOptions): Promise<Curve> {
  const request = postBytes(`/predictions/${ECHO}`, Buffer.from(ECHO_BODY))
  return eachRound(options, 'idle', (_, server) => async () => {
    const loop = await ClosedLoop.start(server.restOrigin, CLIENTS, () => request)
    try {
      return await loop.run(options.seconds)
    } finally {
      loop.stop()
    }
  })
}

/** What opening streams left behind, such as garbage, is not the cost of a chunk. */
function settle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_000))
}

/** Memory and CPU time of streams that wait, for a server that was just started. */
async function idleStreams(options: GrowthOptions) {
  const server = await startStreams(options)
  const streams = new OpenStreams(server, 'idle')
  try {
    const before = await steadyResidentBytes(server)
    const kilobytes: { x: number; y: number }[] = []
    for (const size of SIZES.slice(2)) {
      await streams.grow(size)
      kilobytes.push({ x: size, y: ((await steadyResidentBytes(server)) - before) / size / 1024 })
    }
    const pids = server.pids()
    const cpuBefore = cpuMilliseconds(pids)
    await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000))
    const cpuMs = (cpuMilliseconds(pids) - cpuBefore) / IDLE_SECONDS
    const figure = (name: string, value: number, unit: Figure['unit'], limits = {}): Figure => ({
      ...{ measure: 'streams', name, value, unit },
      ...limits,
    })
    return {
      curve: kilobytes.map(({ x, y }) => ({ size: x, kilobytes: y })),
      figures: [
        figure('Idle streams that the server holds', streams.open, 'streams', { atLeast: MOST }),
        figure('RSS growth per idle stream at 10,000', kilobytes.at(-1)!.y, 'KB', { atMost: 25 }),
        figure('CPU time in a second of 10,000 idle streams', cpuMs, 'ms'),
      ],
      panel: {
        title: 'Memory of frontend and worker per idle stream',
        x: { label: 'idle streams' },
        y: { label: 'KB' },
        lines: [{ name: 'RSS growth per stream', points: kilobytes }],
      },
    }
  } finally {
    streams.close()
    await server.stop()
  }
}

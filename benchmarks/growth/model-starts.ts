import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import type { Figure } from '../measures/figure.ts'
import { residentBytes } from '../processes.ts'
import { median } from '../statistics.ts'
import { postBytes } from './closed-loop.ts'
import { modelName, snapshotOf } from './models.ts'
import type { GrowthOptions } from './options.ts'
import { costPanels, type Result } from './result.ts'
import { type GrowthServer, untilReady } from './servers.ts'
import { measureInTurns, stopServers } from './side-by-side.ts'

/** Models with a worker each: a worker is a process with some 50 MB. */
const WITH_WORKERS = [1, 10, 100]
const REPEATS = 3
const CLIENTS = 8
const TIMEOUT_MS = 300_000
/** A start grows linearly if a model takes no longer among 1,000 than among 100. */
const LINEAR = 1.3

/** Time of a start by models without workers, and by models with one worker each. */
export async function growStarts(
  sizes: readonly number[],
  archive: string,
  options: GrowthOptions,
): Promise<Result> {
  const without: { size: number; ms: number }[] = []
  for (const size of sizes) {
    const times: number[] = []
    for (let i = 0; i < Math.min(REPEATS, options.rounds); i += 1) {
      const models = { snapshot: snapshotOf(size, archive, 0) }
      const server = await options.starter.start({ models, timeout: TIMEOUT_MS })
      times.push(server.startMs)
      await server.stop()
    }
    without.push({ size, ms: median(times) })
  }
  const busy = await withWorkers(archive, options)
  const perModel = (size: number): number => {
    const [one, many] = [1, size].map((each) => without.find((start) => start.size === each)!.ms)
    return (many! - one!) / (size - 1)
  }
  return {
    curves: { 'models: start': without, ...busy.curves },
    figures: [
      {
        measure: 'models',
        name: 'Start per model, 1,000 models to 100',
        value: perModel(1_000) / perModel(100),
        unit: 'x',
        atMost: LINEAR,
      },
      ...busy.figures,
    ],
    plots: [
      {
        file: 'start-by-models',
        title: 'Start',
        panels: [
          {
            title: 'Time of a start',
            x: { label: 'models' },
            y: { label: 'ms' },
            lines: [
              { name: 'no workers', points: without.map(({ size, ms }) => ({ x: size, y: ms })) },
              { name: 'one each', points: busy.starts.map(({ size, ms }) => ({ x: size, y: ms })) },
            ],
          },
        ],
      },
      ...busy.plots,
    ],
  }
}

/** Models with a worker each: their start, and requests that go to all of them in turn. */
async function withWorkers(archive: string, options: GrowthOptions) {
  const servers: GrowthServer[] = []
  try {
    const starts = []
    for (const size of WITH_WORKERS) {
      const begin = performance.now()
      const models = { snapshot: snapshotOf(size, archive, 1) }
      const server = await options.starter.start({ models, timeout: TIMEOUT_MS })
      servers.push(server)
      await untilReady(server, namesOf(size), TIMEOUT_MS)
      const ms = performance.now() - begin
      starts.push({ size, ms, megabytes: residentBytes(server.pids()) / 1024 / 1024 })
    }
    const curve = await measureInTurns(
      WITH_WORKERS.map((size, i) => ({
        ...{ size, server: servers[i]!, clients: CLIENTS, next: inTurn(size) },
      })),
      options,
    )
    const most = starts.at(-1)!
    const memory: Figure = {
      measure: 'models',
      name: `RSS of ${most.size} models with a worker each, per model`,
      value: most.megabytes / most.size,
      unit: 'MB',
    }
    return {
      starts,
      curves: { 'models: start with workers': starts, 'models: requests to all in turn': curve },
      figures: [memory],
      plots: [
        {
          file: 'requests-to-all-models',
          title: 'Requests to all models in turn',
          panels: costPanels('request', 'models with a worker each', curve),
        },
      ],
    }
  } finally {
    await stopServers(servers)
  }
}

function namesOf(size: number): string[] {
  return Array.from({ length: size }, (_, i) => (i === 0 ? ECHO : modelName(i)))
}

function inTurn(size: number): () => Buffer {
  const requests = namesOf(size).map((name) => postBytes(`/predictions/${name}`, Buffer.from(ECHO_BODY)))
  let next = 0
  return () => requests[(next = (next + 1) % size)]!
}

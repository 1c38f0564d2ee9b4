import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createArchive } from '../../model-archiver/pack.ts'
import { ECHO, ECHO_BODY } from '../ceilings/workload.ts'
import type { Figure } from '../measures/figure.ts'
import { scratch } from '../scratch.ts'
import { median } from '../statistics.ts'
import { postBytes } from './closed-loop.ts'
import { growth } from './curve.ts'
import { growStarts } from './model-starts.ts'
import type { GrowthOptions } from './options.ts'
import { costPanels, type Result } from './result.ts'
import { type GrowthServer, untilReady } from './servers.ts'
import { measureInTurns, stopServers } from './side-by-side.ts'

const SIZES = [1, 10, 100, 1_000]
const CLIENTS = 8
const REPEATS = 10
/** Milliseconds. */
const PAGE_LIMIT = 100

/** What 1 to 1,000 loaded models cost: to start, to answer, to register one more, on the metrics page. */
export async function growModels(options: GrowthOptions): Promise<Result> {
  const archive = await echoArchive()
  const starts = await growStarts(SIZES, archive, options)
  const servers: GrowthServer[] = []
  try {
    for (const size of SIZES) servers.push(await startLoaded(size, archive, options))
    const request = postBytes(`/predictions/${ECHO}`, Buffer.from(ECHO_BODY))
    const requests = await measureInTurns(
      SIZES.map((size, i) => ({ size, server: servers[i]!, clients: CLIENTS, next: () => request })),
      options,
    )
    const calls = []
    for (const [i, size] of SIZES.entries()) calls.push({ size, ...(await callTimes(servers[i]!, archive)) })
    return {
      curves: { 'models: request': requests, 'models: calls': calls, ...starts.curves },
      figures: [
        ratio('CPU of a request, 1,000 models to one', growth(requests, 1, 1_000, 'cpu'), 1.1),
        ratio('Median latency of a request, 1,000 models to one', growth(requests, 1, 1_000, 'p50'), 1.1),
        pageFigure(calls.at(-1)!.metricsPage),
        ...starts.figures,
      ],
      plots: [
        {
          file: 'requests-by-models',
          title: 'One echo request',
          panels: costPanels('request', 'loaded models', requests),
        },
        { file: 'calls-by-models', title: 'Calls', panels: [callPanel(calls)] },
        ...starts.plots,
      ],
    }
  } finally {
    await stopServers(servers)
  }
}

function ratio(name: string, value: number, atMost: number): Figure {
  return { measure: 'models', name, value, unit: 'x', atMost }
}

function pageFigure(value: number): Figure {
  return { measure: 'models', name: 'Metrics page with 1,000 models', value, unit: 'ms', atMost: PAGE_LIMIT }
}

/** `echo`, packed: a start unpacks it for each model. */
function echoArchive(): Promise<string> {
  const exportPath = scratch('store')
  mkdirSync(exportPath)
  const folder = fileURLToPath(new URL('../../model-store/echo/', import.meta.url))
  const handler = join(folder, 'handler.ts')
  return createArchive({ modelName: ECHO, version: '1.0', handler, exportPath })
}

/** A model without workers is registered and scaled to 0; `echo` has one. */
export function snapshotOf(size: number, archive: string, workers: 0 | 1): object {
  const version = { defaultVersion: true, marName: `${ECHO}.mar`, modelUrl: archive, maxWorkers: 1 }
  const names = Array.from({ length: size }, (_, i) => (i === 0 ? ECHO : modelName(i)))
  const entries = names.map((name) => [
    name,
    { '1.0': { ...version, minWorkers: name === ECHO ? 1 : workers } },
  ])
  return { models: Object.fromEntries(entries) as object }
}

export function modelName(i: number): string {
  return `model-${i}`
}

/** Every model was asked once, so that the metrics have all of them. */
async function startLoaded(size: number, archive: string, { starter }: GrowthOptions): Promise<GrowthServer> {
  const models = { snapshot: snapshotOf(size, archive, 0) }
  // One more is registered, from outside the model store.
  const config = { enable_model_api: 'true', allowed_urls: 'file://.*' }
  const server = await starter.start({ models, config, snapshots: true, timeout: 300_000 })
  await untilReady(server, [ECHO], 20_000)
  for (let i = 1; i < size; i += 1) {
    const answer = await fetch(`${server.restOrigin}/predictions/${modelName(i)}`, { method: 'POST' })
    await answer.arrayBuffer()
    if (answer.status !== 503) throw new Error(`A model without workers answers ${answer.status}`)
  }
  return server
}

/** Median times of calls that concern all models, in milliseconds. */
async function callTimes(server: GrowthServer, archive: string) {
  let registered = 0
  const register = (): string =>
    `/models?url=${encodeURIComponent(archive)}&model_name=new-${(registered += 1)}&initial_workers=0`
  return {
    ping: await timeOf(() => fetch(`${server.restOrigin}/ping`)),
    list: await timeOf(() => fetch(`${server.managementOrigin}/models?limit=1000`)),
    metricsPage: await timeOf(() => fetch(`${server.metricsOrigin}/metrics`)),
    register: await timeOf(() => fetch(`${server.managementOrigin}${register()}`, { method: 'POST' })),
  }
}

async function timeOf(call: () => Promise<Response>): Promise<number> {
  const times: number[] = []
  for (let i = -2; i < REPEATS; i += 1) {
    const begin = performance.now()
    const response = await call()
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${response.url} answers ${response.status}: ${text}`)
    if (i >= 0) times.push(performance.now() - begin) // the first ones are warm-up
  }
  return median(times)
}

function callPanel(calls: readonly { size: number; [name: string]: number }[]) {
  const names = ['ping', 'list', 'metricsPage', 'register']
  return {
    title: 'Time of calls',
    x: { label: 'loaded models' },
    y: { label: 'ms' },
    lines: names.map((name) => ({
      name: name === 'metricsPage' ? 'metrics' : name,
      points: calls.map((call) => ({ x: call.size, y: call[name]! })),
    })),
  }
}

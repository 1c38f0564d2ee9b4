/**
 * How long the first request to a model at zero takes, and how workers follow a load that rises and falls:
 * `npm run bench:wake [-- wakes]`. Prints milliseconds and counts, and checks that every request was
 * answered.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { launchServer, type Server, started } from '../tests/support/server-process.ts'
import { rawRequest } from '../tests/support/raw-http.ts'

const WAKES = Number(process.argv[2] ?? 20)
const HANDLER = `export async function handle(requests) {
  await new Promise((resolve) => setTimeout(resolve, 50))
  return requests.map(() => 'served')
}
`
/** Clients at once, in each phase of ten seconds. */
const PHASES = [1, 8, 1, 0]
const PHASE_MS = 10_000

function model(folder: string, name: string, config: object): string {
  mkdirSync(join(folder, name))
  writeFileSync(join(folder, name, 'handler.mjs'), HANDLER)
  // JSON is YAML.
  writeFileSync(join(folder, name, 'model-config.yaml'), JSON.stringify(config))
  return `${name}=${join(folder, name)}`
}

async function ask(server: Server, name: string): Promise<number> {
  const from = performance.now()
  const { status, body } = await rawRequest(server.ports.inference, `/predictions/${name}`, { body: 'x' })
  if (status !== 200) throw new Error(`${status} ${body}`)
  return performance.now() - from
}

const workersOf = async (server: Server, name: string): Promise<number> =>
  (await server.describe(name))[0]!.workers.length

async function wakes(server: Server): Promise<void> {
  const times: number[] = []
  for (let k = 0; k < WAKES; k += 1) {
    await server.until(
      () => workersOf(server, 'sleeper'),
      (count) => count === 0,
    )
    times.push(await ask(server, 'sleeper'))
  }
  times.sort((a, b) => a - b)
  const at = (share: number): string => times[Math.floor(share * (times.length - 1))]!.toFixed(0)
  console.log(
    `first request to a model at zero, ms (the handler takes 50): least ${at(0)}, median ${at(0.5)}, most ${at(1)}, of ${WAKES}`,
  )
  const sum = await server.metric('torchserve_ts_wake_seconds_sum', { model_name: 'sleeper' })
  const count = await server.metric('torchserve_ts_wake_seconds_count', { model_name: 'sleeper' })
  console.log(`torchserve_ts_wake_seconds, mean ms: ${((sum / count) * 1000).toFixed(0)}, of ${count}`)
}

async function load(server: Server): Promise<void> {
  let answered = 0
  for (const clients of PHASES) {
    const end = performance.now() + PHASE_MS
    const seen: number[] = []
    const client = async (): Promise<void> => {
      for (; performance.now() < end; answered += 1) await ask(server, 'load')
    }
    const observer = async (): Promise<void> => {
      for (; performance.now() < end; await wait(1000)) seen.push(await workersOf(server, 'load'))
    }
    await Promise.all([observer(), ...Array.from({ length: clients }, client)])
    console.log(`${clients} clients for ${PHASE_MS / 1000} s: workers each second ${seen.join(' ')}`)
  }
  console.log(`answered ${answered}, others 0`)
}

const folder = mkdtempSync(join(tmpdir(), 'wake-'))
const times = { targetQueueTime: 20, scaleUpInterval: 1, scaleDownAfter: 2, scaleToZeroAfter: 4 }
const server = launchServer({
  folder,
  models: [
    model(folder, 'sleeper', { minWorkers: 0, maxWorkers: 1, scaling: { scaleToZeroAfter: 0.001 } }),
    model(folder, 'load', { minWorkers: 0, maxWorkers: 4, scaling: times }),
  ],
})
try {
  await started(server)
  await server.ready('sleeper')
  await wakes(server)
  await load(server)
} finally {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
}

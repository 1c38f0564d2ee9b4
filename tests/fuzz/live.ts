import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { residentBytes } from '../support/memory.ts'
import { ALL_DIALECTS } from '../support/port-dialects.ts'
import type { Random } from '../support/random.ts'
import { rawRequest } from '../support/raw-http.ts'
import { launchServer, REPOSITORY, type Server, started } from '../support/server-process.ts'
import { LogWatch } from '../soak/log-watch.ts'
import { grpcMessage, grpcSession } from './live/grpc.ts'
import { bytesOverHttp } from './live/http.ts'
import { Pulse } from './live/pulse.ts'
import { inputsOf, CORPUS } from './places.ts'
import { mutate } from './mutate.ts'
import { FINDINGS, keep } from './places.ts'
import type { Counts } from './run.ts'
import { tar, zip } from './targets/archives.ts'

export interface LiveOptions {
  seconds: number
  folder: string
  random: Random
}

/** Clients at one time. */
const LANES = 6
const MIB = 1024 ** 2
/** What the server may have grown by when it has nothing to do, and while it is fuzzed. */
const REST_GROWTH = 96 * MIB
const PEAK_GROWTH = 512 * MIB

type Attack = (server: Server, random: Random) => Promise<Uint8Array>

const ATTACKS: readonly [name: string, attack: Attack][] = [
  ['http', bytesOverHttp],
  ['http', bytesOverHttp],
  ['grpc messages', grpcMessage],
  ['grpc bytes', grpcSession],
  ['archives', registerArchive],
]

/** Sends changed requests to a running server on all its ports. */
export async function fuzzServer({ seconds, folder, random }: LiveOptions, counts: Counts): Promise<void> {
  const store = join(folder, 'store')
  const echo = join(REPOSITORY, 'model-store', 'echo')
  const config = { ...ALL_DIALECTS, unregister_model_timeout: 5, default_response_timeout: 20 }
  const server = launchServer({ folder, modelStore: store, models: [`echo=${echo}`], config })
  const log = new LogWatch(server)
  const check = (isPassed: boolean, what: string): void => {
    counts[isPassed ? 'passed' : 'failed'] += 1
    console.log(`${isPassed ? 'ok' : 'FAILED'} server: ${what}`)
  }
  try {
    await started(server)
    await server.ready('echo')
    for (let k = 0; k < 50; k += 1)
      await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x' })
    const before = residentBytes(server.pid)
    const pulse = new Pulse(server)
    const sent = await attack(server, random, seconds, pulse)
    await pulse.stop()
    check(server.process.exitCode === null && server.process.signalCode === null, 'lives on')
    check(
      pulse.late.length === 0,
      `answers /ping within a second: ${pulse.beats} times, longest ${Math.round(pulse.longest)} ms${pulse.late.join(', ')}`,
    )
    for (const [name, count] of sent) check(count > 0, `${count} of ${name}`)
    await zeroGauges(server)
    const after = residentBytes(server.pid)
    const peak = pulse.peak - before
    check(
      peak < PEAK_GROWTH,
      `memory grew by ${Math.round(peak / MIB)} MiB at most, limit ${PEAK_GROWTH / MIB}`,
    )
    check(
      after - before < REST_GROWTH,
      `memory at the end: ${Math.round(before / MIB)} -> ${Math.round(after / MIB)} MiB`,
    )
    const deaths = await server.metric('torchserve_ts_worker_deaths_total', { model_name: 'echo' })
    check(deaths === 0, `${deaths} workers of the model died`)
    const { body } = await rawRequest(server.ports.inference, '/predictions/echo', { body: 'still there' })
    check(body === 'still there', 'answers as before')
    check((await server.stop()) === 0, 'ends with status 0')
    log.look()
    for (const { name, isPassed, detail } of log.checks()) check(isPassed, `${name}: ${detail}`)
  } finally {
    log.stop()
    await server.stop('SIGKILL')
  }
}

async function attack(
  server: Server,
  random: Random,
  seconds: number,
  pulse: Pulse,
): Promise<Map<string, number>> {
  const sent = new Map(ATTACKS.map(([name]) => [name, 0]))
  const end = performance.now() + seconds * 1000
  const lane = async (own: Random): Promise<void> => {
    while (performance.now() < end && server.process.exitCode === null) {
      const [name, run] = own.pick(ATTACKS)
      const input = await run(server, own)
      pulse.note(name, input)
      sent.set(name, sent.get(name)! + 1)
    }
  }
  await Promise.all(Array.from({ length: LANES }, () => lane(random.branch())))
  // What it was doing when it ended is the finding.
  if (server.process.exitCode !== null || server.process.signalCode !== null)
    for (const [name, input] of pulse.latest)
      console.log(`  one of the last inputs: ${keep(FINDINGS, `server-${name.replace(' ', '-')}`, input)}`)
  return sent
}

const archives = new Map<string, Buffer[]>()
let archiveNumber = 0

/** A changed archive in the store, registered and, if that worked, taken away again. */
async function registerArchive(server: Server, random: Random): Promise<Uint8Array> {
  const target = random.pick([zip, tar])
  const seeds =
    archives.get(target.name) ??
    [...(await target.seeds()), ...inputsOf(CORPUS, target.name)].map((seed) => Buffer.from(seed))
  archives.set(target.name, seeds)
  const changed = mutate(random.pick(seeds), random, seeds, target.words)
  const input = target === tar ? gzipSync(changed) : changed
  const name = `fuzz${(archiveNumber += 1) % 20}-${random.integer(0, 1e6)}`
  const file = `${name}.${target === tar ? 'tar.gz' : 'mar'}`
  mkdirSync(join(server.folder, 'store'), { recursive: true })
  writeFileSync(join(server.folder, 'store', file), input)
  const path = `/models?url=${file}&model_name=${name}&initial_workers=${random.integer(0, 1)}&synchronous=true&startup_timeout=5`
  const { status } = await rawRequest(server.ports.management, path)
  if (status === 200) await rawRequest(server.ports.management, `/models/${name}`, { method: 'DELETE' })
  return input
}

async function zeroGauges(server: Server): Promise<void> {
  for (const gauge of ['open_requests', 'open_streams', 'queue_depth'])
    await server.until(
      () => server.metric(`torchserve_ts_${gauge}`),
      (value) => value === 0,
      60_000,
    )
  await sleep(1_000)
}

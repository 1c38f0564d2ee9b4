import { mkdirSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { manifests } from '../resources.ts'
import { modelFolder } from '../../support/model-folder.ts'
import { type PortDialect, DIALECTS } from '../../support/port-dialects.ts'
import { tempDir } from '../../support/temp.ts'
import { podOf, RECONCILED } from './reconciled.ts'
import { type Pod, RunningPod } from './running-pod.ts'

/** How long proxies go on using a pod that ends, as long as they have not heard of it. */
const PROPAGATION_MS = 2_000
/** Answers that each client gets before the update, and again after it. */
const ANSWERS = 10
const STREAM = { n: 40, gap: 100 }

const running: RunningPod[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.stop('SIGKILL')))
})

test('the record is of these manifests', () => {
  expect(RECONCILED.kserve).toBe('v0.15.2')
  const runtimes = manifests('kserve').filter(({ kind }) => kind.endsWith('ServingRuntime'))
  for (const [service, runtime] of [
    ['story', 'torchserve-ts'],
    ['story-grpc', 'torchserve-ts-grpc'],
  ] as const) {
    const { spec } = runtimes.find(({ metadata }) => metadata.name === runtime)!
    expect(podOf(service).spec.containers).toEqual([
      expect.objectContaining((spec['containers'] as object[])[0]!),
    ])
  }
  const { spec } = manifests('kserve').find(({ kind }) => kind === 'InferenceService')!
  const { terminationGracePeriodSeconds } = spec['predictor'] as Pod['spec']
  expect(podOf('story').spec.terminationGracePeriodSeconds).toBe(terminationGracePeriodSeconds)
})

test.each([
  ['story', 8080],
  ['story-grpc', 9000],
])('the Service of %s leads to port %s', (name, target) => {
  const { spec } = RECONCILED.services.find(({ metadata }) => metadata.name === `${name}-predictor`)!
  expect(spec.ports.map(({ targetPort }) => targetPort)).toEqual([target])
})

describe('a rolling update loses nothing', () => {
  test.each(['story', 'story-grpc'])('of %s', async (service) => {
    const endpoints = new Endpoints()
    const models = await store()
    const old = await pod(service, models)
    endpoints.add(old)
    const clients = dialectsOf(service).map((dialect) => new Client(dialect, endpoints))
    const loops = clients.map((client) => client.run())
    await Promise.all(clients.map((client) => client.answers(ANSWERS)))

    // One pod: a surge of 25 % is one more, and 25 % unavailable is none.
    const next = await pod(service, models)
    const streams = dialectsOf(service)
      .filter(({ whole }) => !whole)
      .map((dialect) => new Client(dialect, endpoints).stream(old))
    await Promise.all(streams.map(({ began }) => began))
    endpoints.add(next)
    const ended = old.end()
    setTimeout(() => endpoints.remove(old), PROPAGATION_MS)
    const long = await Promise.all(streams.map(({ ended }) => ended))
    expect(await ended).toBe(0)
    const before = clients.map(({ whole }) => whole)
    await Promise.all(clients.map((client, k) => client.answers(before[k]! + ANSWERS)))
    for (const client of clients) client.stop()
    await Promise.all(loops)

    expect(clients.flatMap(({ lost }) => lost)).toEqual([])
    expect(long).toEqual(long.map(() => STREAM.n))
    expect(long.length).toBeGreaterThan(0)
  })
})

/** Starts the pod of a service, and waits for its readiness probe. */
async function pod(service: string, models: string): Promise<RunningPod> {
  const made = await RunningPod.start(podOf(service), tempDir(), models)
  running.push(made)
  await made.server.until(() => made.isReady(), Boolean)
  return made
}

/** The volume's folder: one folder for each model. */
async function store(): Promise<string> {
  const folder = join(tempDir(), 'models')
  mkdirSync(folder)
  const source = modelFolder('native', 'paced-native', { minWorkers: 1, maxWorkers: 1, maxConcurrency: 50 })
  await cp(source.slice('native='.length), join(folder, 'native'), { recursive: true })
  return folder
}

/** The protocols of a service, each whole and as a stream. */
function dialectsOf(service: string): PortDialect[] {
  const port = service === 'story-grpc' ? 'openInference' : 'inference'
  return DIALECTS.filter(
    (each) => each.port === port && each.name.startsWith('V2') && each.models.includes('native'),
  )
}

/** The pods that the proxies of the cluster use, in turn. */
class Endpoints {
  readonly #pods: RunningPod[] = []
  #turn = 0

  add(pod: RunningPod): void {
    this.#pods.push(pod)
  }

  remove(pod: RunningPod): void {
    this.#pods.splice(this.#pods.indexOf(pod), 1)
  }

  next(): RunningPod {
    this.#turn += 1
    return this.#pods[this.#turn % this.#pods.length]!
  }
}

/** Sends one request after the other in one protocol. */
class Client {
  readonly #dialect: PortDialect
  readonly #endpoints: Endpoints
  readonly #waiting: { count: number; resolve: () => void }[] = []
  #isOn = true
  whole = 0
  readonly lost: string[] = []

  constructor(dialect: PortDialect, endpoints: Endpoints) {
    this.#dialect = dialect
    this.#endpoints = endpoints
  }

  get name(): string {
    return this.#dialect.name
  }

  async run(): Promise<void> {
    while (this.#isOn) {
      const { items, end } = await this.#ask(this.#endpoints.next(), { n: 3, gap: 20 })
      if (end.kind === 'finished' && items.length > 0) this.whole += 1
      else this.lost.push(`${this.name}: ${JSON.stringify(end)}`)
      for (const { count, resolve } of this.#waiting) if (this.whole + this.lost.length >= count) resolve()
    }
  }

  /** Resolves when so many requests were answered or lost. */
  answers(count: number): Promise<void> {
    return new Promise((resolve) => this.#waiting.push({ count, resolve }))
  }

  stop(): void {
    this.#isOn = false
  }

  /** A long stream at one pod: when it has begun, and how many items it had when it finished. */
  stream(pod: RunningPod): { began: Promise<void>; ended: Promise<number> } {
    let begin = (): void => undefined
    const began = new Promise<void>((resolve) => (begin = resolve))
    const asked = this.#ask(pod, STREAM, begin)
    return { began, ended: asked.then(({ items, end }) => (end.kind === 'finished' ? items.length : -1)) }
  }

  async #ask(pod: RunningPod, plan: object, onItem?: () => void) {
    const client = this.#dialect.at(pod.portOf(this.#dialect.port))
    const input = JSON.stringify({ id: String(Math.random()), ...plan })
    return client
      .ask('native', input, onItem === undefined ? {} : { onItem })
      .catch((error: unknown) => ({ items: [], end: { kind: 'failed' as const, message: String(error) } }))
      .finally(() => client.close())
  }
}

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { headerLine, joinHeaders } from '../../common/headers.ts'
import type { TrafficSettings } from '../../frontend/config/traffic-settings.ts'
import { JobIndex } from '../../frontend/jobs/open-jobs.ts'
import { ModelManager } from '../../frontend/models/manager.ts'
import type { Model } from '../../frontend/models/model.ts'
import { Traffic } from '../../frontend/models/traffic.ts'
import { settingsOf } from '../config/support.ts'
import { testJob } from '../support/jobs.ts'
import { testMetrics } from '../support/metrics.ts'
import { tempDir } from '../support/temp.ts'
import { FakePool } from './fake-pool.ts'

/** Versions of the model `m` whose workers are played by the test. */
class Rig {
  readonly warnings: string[] = []
  readonly told: string[] = []
  readonly pools = new Map<string, FakePool>()
  readonly manager: ModelManager
  changes = 0
  #jobs = 0

  constructor() {
    const store = join(tempDir(), 'store')
    for (const version of ['1.0', '2.0', '3.0']) writeVersion(store, version)
    const { settings } = settingsOf({ file: `model_store=${store}\njob_queue_size=2\n` })
    this.manager = new ModelManager({
      settings: { ...settings, tempDir: tempDir() },
      metrics: testMetrics(),
      jobs: new JobIndex(),
      createPool: (model) => this.#pool(model),
      warn: (message) => this.warnings.push(message),
      inform: (message) => this.told.push(message),
      onChange: () => {
        this.changes += 1
        return Promise.resolve()
      },
    })
    rigs.push(this)
  }

  static async with(...versions: string[]): Promise<Rig> {
    const rig = new Rig()
    for (const version of versions) await rig.register(version)
    return rig
  }

  register(version: string, initialWorkers = 1) {
    return this.manager.register({ url: `m-${version}`, modelName: 'm', initialWorkers, synchronous: true })
  }

  set(weights: Record<string, number>, more: Partial<TrafficSettings> = {}) {
    return this.manager.traffic.set('m', { weights, ...more })
  }

  /** The version that got a request, which its worker has begun; and the request. */
  send(request: Parameters<typeof testJob>[1] = {}) {
    const asked = testJob(`r${(this.#jobs += 1)}`, { modelName: 'm', ...request })
    this.manager.submit(asked.job)
    for (const pool of this.pools.values()) if (pool.model.queue.pending > 0) pool.take()
    const [version] = [...this.pools].find(([, { running }]) => running.includes(asked.job))!
    return { ...asked, version }
  }

  /** Weight and requests of a version. */
  async counts(version: string): Promise<unknown[]> {
    const [described] = await this.manager.describe('m', version)
    const { weight, requests } = described!.traffic!
    return [weight, requests]
  }

  #pool(model: Model): FakePool {
    const pool = new FakePool(model)
    pool.onScale = () => Promise.resolve(model.handlerLoaded([]))
    this.pools.set(model.version, pool)
    return pool
  }
}

function writeVersion(store: string, version: string): void {
  const folder = join(store, `m-${version}`)
  mkdirSync(join(folder, 'MAR-INF'), { recursive: true })
  const manifest = {
    runtime: 'node',
    model: { modelName: 'm', modelVersion: version, handler: 'handler.mjs' },
  }
  writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify(manifest))
  writeFileSync(join(folder, 'handler.mjs'), 'export const handle = (data) => data')
}

const rigs: Rig[] = []

afterEach(async () => {
  await Promise.all(rigs.splice(0).map(({ manager }) => manager.close(0, 0)))
})

const OK = { body: Buffer.from('ok'), status: 200, headers: {} }

describe('where a request goes', () => {
  test('what was chosen when the request was read holds when it is submitted, and takes one turn', async () => {
    const rig = await Rig.with('1.0', '2.0')
    await rig.set({ '1.0': 1, '2.0': 1 })
    const versions = Array.from({ length: 6 }, () => {
      const { routedTo, status } = rig.manager.route({ modelName: 'm', headers: '' })
      expect(status.version).toBe(routedTo)
      const { version } = rig.send({ routedTo })
      expect(version).toBe(routedTo)
      return version
    })
    expect(versions.filter((version) => version === '2.0')).toHaveLength(3)
    expect(await rig.counts('2.0')).toEqual([1, 3])
  })

  test('a version that has gone since gives way to another', async () => {
    const rig = await Rig.with('1.0', '2.0')
    await rig.set({ '1.0': 1 })
    await rig.manager.unregister('m', '2.0')
    expect(rig.send({ routedTo: '2.0' }).version).toBe('1.0')
  })

  test('without weights nothing is chosen, and a default that changes meanwhile counts', async () => {
    const rig = await Rig.with('1.0', '2.0')
    expect(rig.manager.route({ modelName: 'm', headers: '' }).routedTo).toBeUndefined()
    rig.manager.setDefault('m', '2.0')
    expect(rig.send().version).toBe('2.0')
  })

  test('a version that no worker has loaded gets nothing while another one is loaded', async () => {
    const rig = await Rig.with('1.0', '2.0')
    await rig.set({ '1.0': 1, '2.0': 9 })
    const snapshot = rig.manager.snapshot()
    const later = new Rig()
    await later.register('1.0')
    await later.register('2.0', 0)
    later.manager.traffic.restore('m', snapshot!.traffic!['m']!)
    expect([later.send().version, later.send().version]).toEqual(['1.0', '1.0'])
    await later.manager.scale({ modelName: 'm', modelVersion: '2.0', minWorker: 1, synchronous: true })
    expect(later.send().version).toBe('2.0')
  })

  test('a version that was scaled to no workers gets nothing while another one has some', async () => {
    const rig = await Rig.with('1.0', '2.0')
    await rig.set({ '1.0': 1, '2.0': 9 })
    const scale = { modelName: 'm', modelVersion: '2.0', synchronous: true }
    await rig.manager.scale({ ...scale, minWorker: 0, maxWorker: 0 })
    expect([rig.send().version, rig.send().version]).toEqual(['1.0', '1.0'])
    expect(await rig.counts('2.0')).toEqual([9, 0])
    await rig.manager.scale({ ...scale, minWorker: 1, maxWorker: 1 })
    expect(rig.send().version).toBe('2.0')
  })

  test('an answer tells the weights that its call has set, whatever another call sets meanwhile', async () => {
    const rig = await Rig.with('1.0', '2.0')
    const asked: Record<string, number>[] = [{ '1.0': 9, '2.0': 1 }, { '1.0': 1 }]
    const answers = await Promise.all([
      ...asked.map((weights) => rig.set(weights)),
      rig.manager.traffic.clear('m'),
    ])
    expect(answers.map(({ weights }) => weights)).toEqual([...asked, {}])
    expect(rig.manager.traffic.describe('m').weights).toEqual({})
  })

  test('weights of a snapshot for versions that are gone are left out, and told', async () => {
    const rig = await Rig.with('1.0')
    rig.manager.traffic.restore('m', { weights: { '1.0': 1, '9.0': 2 } })
    expect(rig.manager.traffic.describe('m').weights).toEqual({ '1.0': 1 })
    rig.manager.traffic.restore('gone', { weights: { '1.0': 1 } })
    expect(rig.warnings).toEqual([
      'Model m: the weights 9.0: 2 of the snapshot are ignored, because these versions do not exist',
      'Model gone: the weights 1.0: 1 of the snapshot are ignored, because these versions do not exist',
    ])
  })

  test('a version that is unloaded takes its weight along, and the log says so', async () => {
    const rig = await Rig.with('1.0', '2.0', '3.0')
    await rig.set({ '1.0': 6, '2.0': 3, '3.0': 1 })
    await rig.manager.retire(rig.manager.registered().find(({ version }) => version === '2.0')!)
    expect(rig.warnings).toEqual([
      'Model m: version 2.0 was removed and loses its weight 3; the other versions share its requests',
    ])
    const { versions } = rig.manager.traffic.describe('m')
    expect(versions.map(({ modelVersion, share }) => [modelVersion, share])).toEqual([
      ['1.0', 6 / 7],
      ['3.0', 1 / 7],
    ])
  })

  test('the others share its requests from then on, whatever their turns were before', async () => {
    const rig = await Rig.with('1.0', '2.0', '3.0')
    await rig.set({ '1.0': 90, '2.0': 9, '3.0': 1 })
    for (let count = 0; count < 5; count += 1) expect(rig.send().version).toBe('1.0')
    await rig.manager.retire(rig.manager.registered().find(({ version }) => version === '1.0')!)
    const next = Array.from({ length: 10 }, () => rig.send().version)
    expect(next.filter((version) => version === '3.0')).toHaveLength(1)
  })

  test('a version that is loaded again keeps its weight and its counts', async () => {
    const rig = await Rig.with('1.0', '2.0')
    await rig.set({ '2.0': 1 })
    rig.send().job.respond(OK)
    const request = { url: 'm-2.0', modelName: 'm', initialWorkers: 1, synchronous: true }
    await rig.manager.replace(request, true)
    expect(rig.send().version).toBe('2.0')
    expect(await rig.counts('2.0')).toEqual([1, 2])
  })
})

describe('sticky values', () => {
  const weights = { '1.0': 1, '2.0': 1 }
  const choose = (traffic: Traffic, headers: string, caller?: { kind: string; name: string }): string =>
    traffic.choose({ headers }, caller, () => true)!.version

  test('a header is found in any case, and the last of several counts', () => {
    const traffic = new Traffic('m', { weights, sticky: { header: 'X-User' } })
    for (let user = 0; user < 20; user += 1) {
      const version = choose(traffic, headerLine('x-user', `u${user}`))
      expect(choose(traffic, joinHeaders({ a: 'X-User', 'X-USER': `u${user}`, b: 'c' }))).toBe(version)
      expect(choose(traffic, headerLine('x-user', 'other') + headerLine('x-user', `u${user}`))).toBe(version)
    }
  })

  test('callers of different kinds with the same name are different', () => {
    const traffic = new Traffic('m', { weights, sticky: { caller: true } })
    const pairs = Array.from({ length: 40 }, (_, index) =>
      ['api key', 'jwt'].map((kind) => choose(traffic, '', { kind, name: `n${index}` })),
    )
    expect(pairs.some(([key, jwt]) => key !== jwt)).toBe(true)
    const turns = [choose(traffic, ''), choose(traffic, '')]
    expect(turns).toEqual(['1.0', '2.0'])
  })

  test('a value whose version is gone moves, and the others stay', () => {
    const three = { '1.0': 1, '2.0': 1, '3.0': 1 }
    const traffic = new Traffic('m', { weights: three, sticky: { header: 'u' } })
    const users = Array.from({ length: 60 }, (_, index) => headerLine('u', `u${index}`))
    const before = users.map((user) => choose(traffic, user))
    traffic.forget('2.0')
    users.forEach((user, index) => {
      const now = choose(traffic, user)
      if (before[index] === '2.0') expect(['1.0', '3.0']).toContain(now)
      else expect(now).toBe(before[index])
    })
  })
})

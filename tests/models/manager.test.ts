import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { afterEach, describe, expect, jest, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import { JobIndex } from '../../frontend/jobs/open-jobs.ts'
import type { ManagerOptions } from '../../frontend/models/build-model.ts'
import { ModelManager } from '../../frontend/models/manager.ts'
import type { RegisterRequest } from '../../frontend/models/operations.ts'
import { isModelReady, isServerReady } from '../../frontend/models/readiness.ts'
import { settingsOf } from '../config/support.ts'
import { heldBack, type Held } from '../support/held.ts'
import { testJob } from '../support/jobs.ts'
import { testMetrics } from '../support/metrics.ts'
import { tempDir } from '../support/temp.ts'
import { FakePool } from './fake-pool.ts'

const UNREGISTER_S = 77
const DRAIN_S = 600
/** The default of cancel_grace_ms. */
const CANCEL_GRACE_MS = 10_000

/** A manager of models whose workers are played by this test, with models a and b in its store. */
class Rig {
  readonly folder = tempDir()
  readonly pools: FakePool[] = []
  readonly warnings: string[] = []
  /** Done to each pool before it is used. */
  shape: (pool: FakePool) => void = () => undefined
  readonly manager: ModelManager

  constructor(options: Partial<ManagerOptions> = {}) {
    const store = join(this.folder, 'store')
    for (const name of ['a', 'b']) {
      mkdirSync(join(store, name), { recursive: true })
      writeFileSync(join(store, name, 'handler.mjs'), 'export const handle = (data) => data')
    }
    const file = `model_store=${store}\nunregister_model_timeout=${UNREGISTER_S}\n`
    const { settings } = settingsOf({ file, env: { TEMP: join(this.folder, 'tmp') } })
    this.manager = new ModelManager({
      settings: { ...settings, tempDir: join(this.folder, 'tmp') },
      metrics: testMetrics(),
      jobs: new JobIndex(),
      createPool: (model) => {
        const pool = new FakePool(model)
        this.pools.push(pool)
        this.shape(pool)
        return pool
      },
      warn: (message) => this.warnings.push(message),
      ...options,
    })
    rigs.push(this)
  }

  static async with(name: string, options: Partial<ManagerOptions> = {}): Promise<Rig> {
    const rig = new Rig(options)
    await rig.register(name)
    return rig
  }

  register(url: string, more: Partial<RegisterRequest> = {}) {
    return this.manager.register({ url, initialWorkers: 1, synchronous: true, ...more })
  }

  /** A request that waits, for no worker takes it. */
  submit(modelName: string, id = 'r') {
    const asked = testJob(id, { modelName })
    this.manager.submit(asked.job)
    return asked
  }

  /** Folders of models that are unpacked. */
  unpacked(): string[] {
    const folder = join(this.folder, 'tmp', 'models')
    return existsSync(folder) ? readdirSync(folder) : []
  }
}

const rigs: Rig[] = []

afterEach(async () => {
  jest.useRealTimers()
  await Promise.all(rigs.splice(0).map(({ manager }) => manager.close(0, 0)))
})

/** From now on; what reads files must be done by then. */
function stopTheClock(): void {
  jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] })
}

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  await new Promise((resolve) => setImmediate(resolve))
}

const errorOf = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no error',
    (error: unknown) => (error as ServeError).code,
  )

describe('the end of the server', () => {
  test('waits for what runs as long as the drain may take, and stops the workers then', async () => {
    const rig = await Rig.with('a')
    const { job, sink } = rig.submit('a')
    stopTheClock()
    rig.manager.beginDrain()
    const closed = rig.manager.close(60_000, 500)
    await pass(59_999)
    expect([sink.calls, rig.pools[0]!.graces]).toEqual([[], []])
    job.respond({ body: Buffer.from('late'), status: 200, headers: {} })
    await pass(0)
    expect([sink.calls, rig.pools[0]!.graces]).toEqual([['whole 200 late'], [500]])
    await closed
  })

  test('ends what is left after it, and tells its clients why', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    rig.pools[0]!.take()
    stopTheClock()
    const closed = rig.manager.close(60_000, 500)
    await pass(60_000)
    await closed
    expect([sink.calls, rig.pools[0]!.graces]).toEqual([
      ['fail SHUTTING_DOWN The server is shutting down'],
      [500],
    ])
  })

  test('without work does not wait', async () => {
    const rig = await Rig.with('a')
    stopTheClock()
    await rig.manager.close(60_000, 500)
    expect(rig.pools[0]!.graces).toEqual([500])
  })

  test('refuses new work from the beginning of the drain on; what it has goes on', async () => {
    const rig = await Rig.with('a')
    const { job, sink } = rig.submit('a')
    rig.manager.beginDrain()
    const late = testJob('late', { modelName: 'a' })
    expect(() => rig.manager.submit(late.job)).toThrow(expect.objectContaining({ code: 'SHUTTING_DOWN' }))
    expect(late.sink.calls).toEqual([])
    const refusals = [
      rig.register('b'),
      rig.manager.scale({ modelName: 'a', minWorker: 2, synchronous: true }),
    ]
    expect(await Promise.all(refusals.map(errorOf))).toEqual(['SHUTTING_DOWN', 'SHUTTING_DOWN'])
    expect([rig.manager.list().models.length, rig.pools.length, rig.unpacked().length]).toEqual([1, 1, 1])
    job.respond({ body: Buffer.from('done'), status: 200, headers: {} })
    expect(sink.calls).toEqual(['whole 200 done'])
  })

  test('calls off what is being installed', async () => {
    const installing = heldBack<AbortSignal>()
    const rig = new Rig({
      installDependencies: (_model, signal) => {
        installing.open(signal)
        return new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => reject(new ServeError('DEPENDENCIES_FAILED', 'called off'))),
        )
      },
    })
    const registering = errorOf(rig.register('a'))
    const signal = await installing.opened
    await rig.manager.close(0, 0)
    expect(signal.aborted).toBe(true)
    expect(await registering).toBe('DEPENDENCIES_FAILED')
    expect([rig.manager.list().models, rig.unpacked()]).toEqual([[], []])
  })

  test('ends a start that is under way: who waits for it hears of the shutdown', async () => {
    const rig = new Rig()
    const scaling = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () => {
        scaling.open()
        return new Promise((_resolve, reject) => {
          pool.onStop = () => {
            reject(new ServeError('WORKER_START_FAILED', 'The worker was stopped'))
            return Promise.resolve()
          }
        })
      }
    }
    const registering = errorOf(rig.register('a'))
    await scaling.opened
    await rig.manager.close(0, 0)
    expect(await registering).toBe('SHUTTING_DOWN')
  })

  test('at once: every worker is killed, nothing unpacked is left, and who waits is told when they are gone', async () => {
    const rig = await Rig.with('a')
    const gone = heldBack()
    rig.pools[0]!.onKill = () => gone.opened
    let isKilled = false
    const killed = rig.manager.kill().then(() => (isKilled = true))
    expect([rig.pools[0]!.kills, rig.unpacked()]).toEqual([1, []])
    await turn()
    expect(isKilled).toBe(false)
    gone.open()
    await killed
  })
})

describe('unregistering', () => {
  test('lets end what runs and what waits, and then stops the workers', async () => {
    const rig = await Rig.with('a')
    const running = rig.submit('a', 'running')
    rig.pools[0]!.take()
    rig.pools[0]!.model.queue.serve([])
    const waiting = rig.submit('a', 'waiting')
    const stopping: Held<void> = heldBack()
    const stopped: Held<void> = heldBack()
    rig.pools[0]!.onStop = () => {
      stopping.open()
      return stopped.opened
    }
    const unregistered = rig.manager.unregister('a')
    await turn()
    expect(() => rig.submit('a')).toThrow(expect.objectContaining({ code: 'MODEL_NOT_FOUND' }))
    running.job.respond({ body: Buffer.from('1'), status: 200, headers: {} })
    await turn()
    expect([rig.pools[0]!.graces, waiting.sink.calls]).toEqual([[], []])
    rig.pools[0]!.take()
    waiting.job.respond({ body: Buffer.from('2'), status: 200, headers: {} })
    await stopping.opened
    expect([running.sink.calls, waiting.sink.calls]).toEqual([['whole 200 1'], ['whole 200 2']])
    expect(rig.pools[0]!.graces[0]).toBeLessThanOrEqual(UNREGISTER_S * 1000)
    expect(rig.unpacked()).toHaveLength(1)
    stopped.open()
    expect(await unregistered).toEqual({ state: 'done', message: 'Model "a" unregistered' })
    expect(rig.unpacked()).toEqual([])
  })

  test('fails after unregister_model_timeout what still waits, and stops the workers at once', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    const stopped: Held<void> = heldBack()
    rig.pools[0]!.onStop = () => Promise.resolve(stopped.open())
    stopTheClock()
    const unregistered = rig.manager.unregister('a')
    await pass(0)
    await pass(UNREGISTER_S * 1000 - 1)
    expect([sink.calls, rig.pools[0]!.graces]).toEqual([[], []])
    await pass(1)
    await stopped.opened
    expect([sink.calls, rig.pools[0]!.graces]).toEqual([['fail NO_WORKER Model "a" was unregistered'], [0]])
    await unregistered
  })

  test('is cut short by a server that ends, which ends what is left', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    const unregistered = rig.manager.unregister('a')
    await turn()
    await rig.manager.close(0, 250)
    await unregistered
    expect(sink.calls).toEqual(['fail SHUTTING_DOWN The server is shutting down'])
    expect([rig.pools[0]!.graces.includes(250), rig.unpacked()]).toEqual([true, []])
  })

  test('says when its workers had to be killed; the files are gone all the same', async () => {
    const rig = await Rig.with('a')
    rig.pools[0]!.onStop = () => Promise.reject(new ServeError('CLEANUP_TIMEOUT', 'Timed out'))
    expect(await errorOf(rig.manager.unregister('a'))).toBe('CLEANUP_TIMEOUT')
    expect([rig.unpacked(), rig.manager.list().models]).toEqual([[], []])
  })
})

describe('registering', () => {
  test('answers when the workers are loaded', async () => {
    const rig = new Rig()
    const loading = heldBack()
    const started = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () => {
        started.open()
        return loading.opened
      }
    }
    let answered = false
    const registering = rig.register('a', { initialWorkers: 2 }).finally(() => (answered = true))
    await started.opened
    await new Promise((resolve) => setImmediate(resolve))
    expect([answered, rig.pools[0]!.wanted]).toEqual([false, 2])
    loading.open()
    const message = 'Model "a" Version: 1.0 registered with 2 initial workers'
    expect(await registering).toEqual({ state: 'done', message })
  })

  test('leaves nothing behind when they do not load', async () => {
    const rig = new Rig()
    const cause = new ServeError('WORKER_START_FAILED', 'no such module', { detail: 'stack' })
    rig.shape = (pool) => (pool.onScale = () => Promise.reject(cause))
    await expect(rig.register('a')).rejects.toMatchObject({
      code: 'WORKER_START_FAILED',
      message: 'Failed to start workers for model a version: 1.0. no such module',
      detail: 'stack',
    })
    expect([rig.manager.list().models, rig.unpacked(), rig.pools[0]!.graces]).toEqual([[], [], [0]])
  })

  test('a version twice is a conflict that changes nothing', async () => {
    const rig = await Rig.with('a')
    expect(await errorOf(rig.register('a'))).toBe('CONFLICT')
    expect([rig.unpacked().length, rig.pools.length]).toEqual([1, 1])
    rig.submit('a')
  })

  test('a snapshot is written before the client hears of it, and after each change', async () => {
    const events: string[] = []
    const rig = new Rig({
      onChange: async () => {
        await new Promise((resolve) => setImmediate(resolve))
        events.push('written')
      },
    })
    const step = async (name: string, work: Promise<unknown>) => {
      await work
      events.push(name)
    }
    await step('registered', rig.register('a'))
    await step('accepted', rig.register('b', { synchronous: false }))
    await step('scaled', rig.manager.scale({ modelName: 'a', minWorker: 2, synchronous: true }))
    await step('unregistered', rig.manager.unregister('b'))
    const pairs = ['registered', 'accepted', 'scaled', 'unregistered'].flatMap((name) => ['written', name])
    expect(events).toEqual(pairs)
  })
})

describe('loading a model again', () => {
  test('the old one answers until the new one is loaded, and then what it has, what waits too', async () => {
    const rig = await Rig.with('a')
    const [old] = rig.pools
    const loading = heldBack()
    const started = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () => {
        started.open()
        return loading.opened
      }
    }
    const loaded = rig.manager.repository.load('a')
    await started.opened
    const { job, sink } = rig.submit('a')
    expect([old!.model.queue.pending, old!.graces]).toEqual([1, []])
    loading.open()
    await loaded
    rig.submit('a', 'next')
    expect([old!.graces, sink.calls, rig.pools[1]!.model.queue.pending]).toEqual([[], [], 1])
    const ended = heldBack()
    old!.onStop = () => Promise.resolve(ended.open())
    job.respond({ body: Buffer.from('late'), status: 200, headers: {} })
    await ended.opened
    expect([old!.graces, sink.calls]).toEqual([[CANCEL_GRACE_MS], ['whole 200 late']])
  })

  test('the old one has ten minutes to end', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    const { queue } = rig.pools[0]!.model
    const loaded = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () => {
        stopTheClock()
        loaded.open()
        return Promise.resolve()
      }
    }
    const load = rig.manager.repository.load('a')
    await loaded.opened
    await load
    await pass(DRAIN_S * 1000 - 1)
    expect([queue.pending, sink.calls]).toEqual([1, []])
    await pass(1)
    expect([queue.pending, sink.calls]).toEqual([0, ['fail NO_WORKER Model "a" was loaded again']])
  })

  test('of more than four old ones with requests the oldest ends', async () => {
    const rig = await Rig.with('a')
    const sinks = []
    for (let load = 1; load <= 5; load += 1) {
      expect(sinks.flatMap(({ calls }) => calls)).toEqual([])
      sinks.push(rig.submit('a', `r${load}`).sink)
      await rig.manager.repository.load('a')
    }
    expect(sinks.map(({ calls }) => calls)).toEqual([
      ['fail NO_WORKER The model was reloaded several times before the request ended'],
      ...[[], [], [], []],
    ])
  })

  test('the operator hears of an old one that did not end', async () => {
    const warned = heldBack<string>()
    const rig = await Rig.with('a', { warn: (message) => warned.open(message) })
    rig.pools[0]!.onStop = () => Promise.reject(new ServeError('CLEANUP_TIMEOUT', 'It had to be killed'))
    await rig.manager.repository.load('a')
    expect(await warned.opened).toMatch(
      /^Model a, version 1\.0, was loaded again; its old workers did not end within \d+ ms and were killed\. Look for/,
    )
  })

  test('a server that ends waits for what an old one still has', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    await rig.manager.repository.load('a')
    await rig.manager.close(0, 250)
    expect(sink.calls).toEqual(['fail SHUTTING_DOWN The server is shutting down'])
    expect(rig.pools.map(({ graces }) => graces)).toEqual([[250], [250]])
  })

  test('a path of the operator outside the store can be loaded again and again', async () => {
    const rig = new Rig()
    const location = join(tempDir(), 'outside')
    mkdirSync(location)
    writeFileSync(join(location, 'handler.mjs'), 'export const handle = (data) => data')
    await rig.manager.startup.load({ location })
    for (const load of [1, 2]) {
      await rig.manager.repository.load('outside')
      expect(rig.pools).toHaveLength(load + 1)
    }
    expect(new Set(rig.pools.map(({ model }) => model.minWorkers)).size).toBe(1)
  })

  test('one that is called off leaves the old one in its place, and nothing behind', async () => {
    const rig = await Rig.with('a')
    const started = heldBack()
    const callOff = new AbortController()
    rig.shape = (pool) => {
      pool.onScale = () =>
        new Promise((_, reject) => {
          pool.onStop = () => Promise.resolve(reject(new ServeError('WORKER_START_FAILED', 'stopped')))
          started.open()
        })
    }
    const request = { url: 'a', synchronous: true }
    const replaced = rig.manager.replace(request, true, callOff.signal)
    await started.opened
    callOff.abort()
    expect(await errorOf(replaced)).toBe('WORKER_START_FAILED')
    expect([rig.manager.registered().map(({ workers }) => workers), rig.unpacked().length]).toEqual([
      [rig.pools[0]],
      1,
    ])
  })

  test('requests that wait for a first one that is called off fail with it', async () => {
    const rig = new Rig()
    const callOff = new AbortController()
    const started = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () =>
        new Promise((_, reject) => {
          pool.onStop = () => Promise.resolve(reject(new ServeError('WORKER_START_FAILED', 'stopped')))
          started.open()
        })
    }
    const replaced = rig.manager.replace({ url: 'a', synchronous: true }, true, callOff.signal)
    await started.opened
    const { sink } = rig.submit('a', 'waits')
    callOff.abort()
    expect(await errorOf(replaced)).toBe('WORKER_START_FAILED')
    expect(sink.calls).toEqual(['fail NO_WORKER Model "a" could not be loaded'])
    expect([rig.manager.registered(), rig.unpacked()]).toEqual([[], []])
  })

  test('the old one stays when the new one does not load', async () => {
    const rig = await Rig.with('a')
    rig.shape = (pool) => (pool.onScale = () => Promise.reject(new ServeError('WORKER_START_FAILED', 'no')))
    expect(await errorOf(rig.manager.repository.load('a'))).toBe('WORKER_START_FAILED')
    rig.submit('a')
    expect([rig.pools[0]!.model.queue.pending, rig.pools[0]!.graces, rig.unpacked().length]).toEqual([
      1,
      [],
      1,
    ])
  })

  test('one that waits to take another’s place ends with the server too', async () => {
    const rig = await Rig.with('a')
    const started = heldBack()
    rig.shape = (pool) => {
      pool.onScale = () => {
        started.open()
        return new Promise(() => undefined)
      }
    }
    void rig.manager.repository.load('a')
    await started.opened
    await rig.manager.close(0, 250)
    expect(rig.pools.map(({ graces }) => graces)).toEqual([[250], [250]])
  })
})

describe('scaling', () => {
  test('to no workers fails what waits, and refuses what comes', async () => {
    const rig = await Rig.with('a')
    const { sink } = rig.submit('a')
    await rig.manager.scale({ modelName: 'a', minWorker: 0, synchronous: true })
    expect(sink.calls).toEqual(['fail NO_WORKER Model "a" was scaled to 0 workers'])
    expect(() => rig.submit('a')).toThrow(expect.objectContaining({ code: 'NO_WORKER' }))
  })

  test('that fails is told to who waits for it, and to the operator when nobody does', async () => {
    const rig = await Rig.with('a')
    rig.pools[0]!.onScale = () => Promise.reject(new ServeError('WORKER_START_FAILED', 'no such module'))
    const request = { modelName: 'a', minWorker: 2 }
    expect(await errorOf(rig.manager.scale({ ...request, synchronous: true }))).toBe('WORKER_START_FAILED')
    const { state } = await rig.manager.scale({ ...request, synchronous: false })
    await new Promise((resolve) => setImmediate(resolve))
    expect([state, rig.warnings]).toEqual(['accepted', [expect.stringContaining('no such module')]])
  })
})

test("describe with the handler's own metadata does not wait for a worker that starts", async () => {
  const rig = await Rig.with('a')
  rig.pools[0]!.ready = 0
  const described = rig.manager.describe('a', undefined, true)
  await expect(described).rejects.toMatchObject({ code: 'NO_WORKER' })
})

describe('health and readiness', () => {
  test('a server with a worker past its retries is not healthy, and so not ready', async () => {
    const rig = await Rig.with('a')
    expect([rig.manager.health(), await isServerReady(rig.manager)]).toEqual(['Healthy', true])
    rig.pools[0]!.healthy = 0
    expect([rig.manager.health(), await isServerReady(rig.manager)]).toEqual(['Unhealthy', false])
  })

  test('a model whose worker still loads is not ready; one of several is enough', async () => {
    const rig = await Rig.with('a', {})
    await rig.manager.scale({ modelName: 'a', minWorker: 2, synchronous: true })
    rig.pools[0]!.ready = 0
    expect(await isModelReady(rig.manager, 'a')).toBe(false)
    rig.pools[0]!.ready = 1
    expect(await isModelReady(rig.manager, 'a')).toBe(true)
    expect(await errorOf(isModelReady(rig.manager, 'none'))).toBe('MODEL_NOT_FOUND')
  })

  test('a server is ready when each model of its start is, whatever was registered later', async () => {
    const rig = new Rig()
    await rig.manager.startup.load({ location: join(rig.folder, 'store', 'a') })
    await rig.register('b')
    rig.pools[1]!.ready = 0
    expect(await isServerReady(rig.manager)).toBe(true)
    rig.pools[0]!.ready = 0
    expect(await isServerReady(rig.manager)).toBe(false)
    rig.pools[0]!.wanted = 0
    rig.pools[0]!.model.minWorkers = 0
    expect(await isServerReady(rig.manager)).toBe(true)
  })
})

describe('of two archives of the start with one name and version', () => {
  test.each(['a', 'b'])(
    'the first in the list is loaded and the second has failed, when %s is read first',
    async (early) => {
      const rest = heldBack()
      const rig = new Rig({
        installDependencies: ({ prepared }) =>
          basename(prepared.modelDir) === early ? Promise.resolve() : rest.opened,
      })
      const loads = ['a', 'b'].map((location) => rig.manager.startup.load({ location, name: 'x' }))
      while (rig.manager.registered().length === 0) await turn()
      rest.open()
      await Promise.all(loads)
      expect(rig.manager.registered().map(({ url }) => url)).toEqual(['a'])
      expect(rig.manager.failed()).toMatchObject([
        { name: 'x', version: '1.0', failure: { publicCause: 'b has the name and version of a' } },
      ])
      expect(rig.warnings).toEqual([
        expect.stringMatching(
          /^Failed to load model: b: a has the same name and version, x 1\.0 \(id \w{12}\)$/,
        ),
      ])
      expect(await isServerReady(rig.manager)).toBe(false)
      await rig.manager.unregister('x')
      expect(rig.manager.failed()).toEqual([])
    },
  )
})

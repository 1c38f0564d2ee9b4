import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { ServeError } from '../../common/errors.ts'
import { JobIndex } from '../../frontend/jobs/open-jobs.ts'
import type { ModelSettings } from '../../frontend/models/model-settings.ts'
import { Model } from '../../frontend/models/model.ts'
import type { WorkerPool } from '../../frontend/models/worker-pool.ts'
import type { Start } from '../../frontend/workers/launch.ts'
import { Worker } from '../../frontend/workers/worker.ts'
import { testMetrics } from '../support/metrics.ts'
import { FakeGroup, turns } from './fake-group.ts'
import { testJob, type TestJob } from '../support/jobs.ts'

const SETTINGS = {
  maxConcurrency: 2,
  tensorConcurrency: 100,
  responseTimeout: 20,
  maxRetryTimeoutInSec: 300,
  cancelGraceMs: 5000,
  streamWindowSize: 1000,
  batchSize: 1,
  maxBatchDelay: 0,
  jobQueueSize: 10,
  timeouts: { queue: 0, firstResponse: 0, gap: 0, total: 0 },
  credentialHeaders: new Set(),
} as unknown as ModelSettings

/** How a process ended. */
const GONE = { at: new Date(0), reason: 'gone', publicCause: 'gone', stderr: [], outOfMemory: false }

/** A worker whose processes are played by this test: one group for each start. */
class Rig {
  readonly starts: Start[] = []
  readonly groups: FakeGroup[] = []
  readonly log: string[] = []
  readonly lost: string[] = []
  /** What it says of its failure, each time that it changes. */
  readonly failures: string[] = []
  frees = 0
  readonly model: Model
  readonly worker: Worker

  constructor(settings: Partial<ModelSettings> = {}, shape: (group: FakeGroup) => void = () => undefined) {
    const metrics = testMetrics().model('m', '1.0')
    const all = { ...SETTINGS, ...settings }
    const options = { name: 'm', url: 'm.mar', prepared: { version: '1.0' } as PreparedModel, settings: all }
    const more = { metrics, loadedAtStartup: false, maxRequestBytes: 1000, jobs: new JobIndex() }
    const sequenceHeaders = { id: 'id', start: 'start', end: 'end' }
    this.model = new Model({ ...options, ...more, sequenceHeaders }, () => ({ wanted: 1 }) as WorkerPool)
    this.worker = new Worker(
      9000,
      'W-9000-m_1.0',
      { devices: [], device: 'cpu', threads: () => 1 },
      this.model,
      (start, events) => {
        const group = new FakeGroup(events)
        shape(group)
        this.starts.push(start)
        this.groups.push(group)
        return group
      },
      {
        onFree: () => (this.frees += 1),
        onLost: ({ code }) => this.lost.push(code),
        onFailureChange: (failure) => this.failures.push(failure?.publicCause ?? 'serves'),
        failed: ({ message, detail, isKnown }) =>
          this.log.push(
            `error - ${message.replace(/ \(id [0-9a-f]{12}\)/, ' (id)')}${isKnown ? '' : `\n${detail}`}`,
          ),
        log: (level, message, output) => {
          if (!message.startsWith('State change')) this.log.push(`${level} ${output ?? '-'} ${message}`)
        },
      },
    )
  }

  /** The processes of the present start. */
  get group(): FakeGroup {
    return this.groups.at(-1)!
  }

  static async ready(...options: ConstructorParameters<typeof Rig>): Promise<Rig> {
    const rig = new Rig(...options)
    await rig.group.loaded()
    return rig
  }

  run(id: string): TestJob {
    const job = testJob(id)
    this.worker.run([job.job])
    return job
  }
}

beforeEach(() => {
  jest.useFakeTimers()
})

afterEach(() => {
  jest.useRealTimers()
})

async function pass(ms: number): Promise<void> {
  jest.advanceTimersByTime(ms)
  await turns()
}

describe('the start of a worker', () => {
  test('is ready when its handler is loaded, and offers its slots then, not before', async () => {
    const rig = new Rig()
    const states = [rig.worker.state]
    rig.group.connected()
    states.push(rig.worker.state)
    expect([rig.worker.freeSlots, rig.frees]).toEqual([0, 0])
    await rig.group.loaded()
    states.push(rig.worker.state)
    expect(states).toEqual(['starting', 'loading', 'ready'])
    expect([rig.worker.freeSlots, rig.frees]).toEqual([2, 1])
    await rig.worker.loaded
    expect(rig.worker.describe()).toMatchObject({ status: 'READY', state: 'ready', pid: 4242, restarts: 0 })
  })

  test('tells the model what the handler speaks', async () => {
    const rig = await Rig.ready({}, (group) => (group.methods = ['predict']))
    expect([rig.model.methods, rig.worker.freeSlots]).toEqual([['predict'], 100])
  })

  test('a handler with handle beside predict gets as many batches at once as without', async () => {
    const rig = await Rig.ready({}, (group) => (group.methods = ['handle', 'predict']))
    expect(rig.worker.freeSlots).toBe(rig.model.settings.maxConcurrency)
  })

  test('a handler that does not load: who waits is told, the operator too, and it is tried again after a pause', async () => {
    const rig = new Rig()
    const waiting = rig.worker.loaded
    await rig.group.loadFails('WORKER_START_FAILED', 'no such module', 'line 1\nline 2')
    await expect(waiting).rejects.toMatchObject({ message: 'no such module' })
    expect(rig.log).toEqual(['error - Load failed (id): no such module\nline 1\nline 2'])
    const first = rig.worker.failure!.id
    expect([rig.group.kills, rig.groups.length]).toEqual([1, 1])
    await rig.group.ends()
    expect(rig.worker.state).toBe('waiting')
    await pass(99)
    expect(rig.groups).toHaveLength(1)
    await pass(1)
    expect([rig.groups.length, rig.worker.state]).toEqual([2, 'starting'])
    expect(rig.starts.map(({ serial }) => serial)).toEqual(['9000-1', '9000-2'])
    expect(rig.worker.describe().lastExit).toMatchObject({
      reason: 'no such module',
      stderr: ['line 1', 'line 2'],
    })
    await rig.group.loadFails('WORKER_START_FAILED', 'no such module', 'line 1\nline 2')
    expect(rig.log.at(-1)).toBe('error - Load failed (id): no such module')
    // It leads to the line that has the stack.
    expect(rig.worker.failure!.id).toBe(first)
    await rig.group.ends()
    await pass(2_000)
    await rig.group.loadFails('WORKER_START_FAILED', 'no such file', 'line 3')
    expect(rig.log.at(-1)).toBe('error - Load failed (id): no such file\nline 3')
  })

  test('a handler that did not load: the worker has failed until it loads, also while it is tried again', async () => {
    const rig = new Rig()
    expect(rig.worker.failure).toBeUndefined()
    await rig.group.loadFails('WORKER_START_FAILED', '/some/path')
    const first = rig.worker.failure
    expect(first).toMatchObject({ reason: '/some/path', publicCause: 'its worker could not be started' })
    await rig.group.ends()
    await pass(100)
    expect([rig.worker.state, rig.worker.failure]).toEqual(['starting', first])
    await rig.group.loadFails('OUT_OF_MEMORY', 'too large')
    expect(rig.worker.failure!.id).not.toBe(first!.id)
    await rig.group.ends()
    await pass(1000)
    await rig.group.loaded()
    expect([rig.worker.state, rig.worker.failure]).toEqual(['ready', undefined])
    expect(rig.failures).toEqual([
      'its worker could not be started',
      'out of memory while it loaded',
      'serves',
    ])
  })

  test('a new start waits until nothing of the last one is left', async () => {
    const rig = new Rig()
    await rig.group.loadFails('WORKER_START_FAILED', 'no')
    await pass(60_000)
    expect(rig.groups).toHaveLength(1)
  })

  test('without time for retries it gives up after the first failure', async () => {
    const rig = new Rig({ maxRetryTimeoutInSec: 0 })
    await rig.group.loadFails('WORKER_START_FAILED', 'no such module')
    await rig.group.ends()
    await pass(60_000)
    expect([rig.worker.state, rig.groups.length]).toEqual(['failed', 1])
    await expect(rig.worker.loaded).rejects.toMatchObject({ message: 'no such module' })
  })
})

describe('requests', () => {
  test('take slots, and give them back', async () => {
    const rig = await Rig.ready()
    rig.run('a')
    const b = rig.run('b')
    expect([rig.worker.freeSlots, rig.worker.describe()]).toMatchObject([0, { state: 'busy', inFlight: 2 }])
    rig.group.answer(2)
    expect([rig.worker.freeSlots, rig.frees]).toEqual([1, 2])
    expect(b.sink.calls).toEqual(['whole 200 answer'])
  })

  test('a failure of the handler is in the operator’s log with its request id and what the handler threw', async () => {
    const rig = await Rig.ready()
    rig.run('request-7')
    const error = new ServeError('HANDLER_FAILED', 'Prediction failed', { detail: 'TypeError: x\n  at y' })
    rig.group.message({ type: 'failure', id: 1, error: error.toWire() })
    expect(rig.log).toEqual(['error - request-7 HANDLER_FAILED: TypeError: x\n  at y'])
  })

  test('what a handler logs has its request id; what it prints does not', async () => {
    const rig = await Rig.ready()
    rig.group.message({ type: 'log', level: 'warn', message: 'hot', requestId: 'r9' })
    rig.group.events.onOutput('stdout', 'hello', '')
    rig.group.events.onOutput('stderr', 'oops', '[rank 1] ')
    expect(rig.log).toEqual(['warn stdout r9 hot', 'info stdout hello', 'warn stderr [rank 1] oops'])
  })

  test('a cancelled one whose handler does not return in time: the worker is killed, and describe says why', async () => {
    const rig = await Rig.ready()
    rig.run('a').job.cancel()
    await pass(4999)
    expect(rig.group.kills).toBe(0)
    await pass(1)
    expect(rig.group.kills).toBe(1)
    await rig.group.dies({ reason: 'The process was killed by SIGKILL', outOfMemory: true })
    expect(rig.worker.describe().lastExit?.reason).toBe(
      'Killed: a cancelled request ran for longer than 5000 ms; the worker is restarted',
    )
    // That we killed it is no lack of memory.
    expect(rig.lost).toEqual(['WORKER_LOST'])
  })

  test('a second rank that hangs after the first has answered: the worker is killed after the response timeout', async () => {
    const rig = await Rig.ready({}, (group) => (group.finishingRanks = 2))
    const { sink } = rig.run('a')
    rig.group.answer(1)
    expect(sink.calls).toEqual(['whole 200 answer'])
    await pass(19_999)
    expect([rig.group.kills, rig.worker.freeSlots]).toEqual([0, 1])
    await pass(1)
    expect(rig.group.kills).toBe(1)
  })

  test('a second rank that finishes in time harms nobody', async () => {
    const rig = await Rig.ready({}, (group) => (group.finishingRanks = 2))
    rig.run('a')
    rig.group.answer(1)
    rig.group.message({ type: 'finished', id: 1 }, 1)
    await pass(10 * 20_000)
    rig.group.sent.length = 0
    expect([rig.worker.freeSlots, rig.worker.state]).toEqual([2, 'ready'])
  })
})

describe('pings', () => {
  const pings = (rig: Rig) => rig.group.sent.filter(({ type }) => type === 'ping')

  test('an idle worker that answers none for the response timeout is killed', async () => {
    const rig = await Rig.ready()
    await pass(5000)
    expect(pings(rig)).toEqual([{ type: 'ping', nonce: 1 }])
    await pass(20_000)
    expect(rig.group.kills).toBe(0)
    await pass(5000)
    expect(rig.group.kills).toBe(1)
    await rig.group.dies()
    expect(rig.worker.describe().lastExit?.reason).toBe('Killed: it did not answer pings')
    await pass(100)
    expect([rig.groups.length, rig.worker.state]).toEqual([2, 'starting'])
  })

  test('one that answers them lives', async () => {
    const rig = await Rig.ready()
    for (let k = 1; k <= 20; k += 1) {
      await pass(5000)
      rig.group.message({ type: 'pong', nonce: k })
    }
    expect([pings(rig).length, rig.group.kills]).toEqual([20, 0])
  })

  test('a busy one gets none', async () => {
    const rig = await Rig.ready()
    rig.run('a')
    await pass(100_000)
    expect([pings(rig), rig.group.kills]).toEqual([[], 0])
  })

  test('nor one whose kind does not answer them', async () => {
    const rig = await Rig.ready({}, (group) => (group.isNative = false))
    await pass(100_000)
    expect([pings(rig), rig.group.kills]).toEqual([[], 0])
  })
})

describe('the death of a worker', () => {
  test('fails what it had, after the scheduler has heard of it, and it starts again', async () => {
    const rig = await Rig.ready()
    const { job, sink } = rig.run('a')
    const order: string[] = []
    job.opened({ ended: () => order.push(`ended, lost: ${rig.lost.length}`) })
    await rig.group.dies({ stderr: ['last words'] })
    expect(sink.calls).toEqual(['fail WORKER_LOST Worker died.'])
    expect(order).toEqual(['ended, lost: 1'])
    expect(rig.log).toEqual([
      'error - Worker died: The process exited with code 7',
      `error - Requests that failed with the worker: ${job.request.requestId}`,
    ])
    expect([rig.worker.state, rig.worker.freeSlots]).toEqual(['waiting', 0])
    await pass(100)
    await rig.group.loaded()
    expect([rig.worker.state, rig.worker.freeSlots]).toEqual(['ready', 2])
    expect(rig.worker.describe()).toMatchObject({ restarts: 1, lastExit: { stderr: ['last words'] } })
  })

  test('tells the ids of the first requests that failed with it, and none of those that had ended', async () => {
    const rig = await Rig.ready({ asyncCommunication: true })
    const jobs = Array.from({ length: 22 }, (_, n) => rig.run(`r${n}`).job)
    jobs[0]!.fail(new ServeError('CANCELLED', 'The client left'))
    await rig.group.dies()
    const ids = jobs.slice(1, 21).map(({ request }) => request.requestId)
    expect(rig.log.at(-1)).toBe(`error - Requests that failed with the worker: ${ids.join(', ')} and 1 more`)
  })

  test('that had no request tells none', async () => {
    const rig = await Rig.ready()
    await rig.group.dies()
    expect(rig.log).toEqual(['error - Worker died: The process exited with code 7'])
  })

  test('for lack of memory says so', async () => {
    const rig = await Rig.ready()
    const { sink } = rig.run('a')
    await rig.group.dies({ outOfMemory: true })
    expect(sink.calls).toEqual(['fail WORKER_KILLED Worker died.'])
    expect(rig.lost).toEqual(['WORKER_KILLED'])
  })

  test('again and again makes the pauses longer, until it gives up', async () => {
    const rig = await Rig.ready({ maxRetryTimeoutInSec: 3 })
    for (const pause of [100, 1000, 1000, 2000]) {
      await rig.group.dies()
      await pass(pause - 1)
      expect(rig.worker.state).toBe('waiting')
      await pass(1)
      await rig.group.loaded()
    }
    // From the third on the model says so, until the handler is loaded again.
    const again = 'its worker exited with code 7 again and again'
    expect(rig.failures).toEqual([again, 'serves', again, 'serves'])
    await rig.group.dies()
    expect(rig.worker.state).toBe('failed')
    expect(rig.failures.at(-1)).toBe('its worker exited with code 7 and is not started again')
    expect(rig.log.at(-1)).toMatch(
      /^error - Not started again \(id [0-9a-f]{12}\): The process exited with code 7$/,
    )
    await expect(rig.worker.loaded).rejects.toMatchObject({ message: 'The process exited with code 7' })
  })

  test('what the processes of an earlier start say does not count', async () => {
    const rig = await Rig.ready()
    const [old] = rig.groups
    await old!.dies()
    await pass(100)
    await rig.group.loaded()
    const late = { at: new Date(), reason: 'late', publicCause: 'late', stderr: [], outOfMemory: false }
    old!.events.onDeath(late)
    expect([rig.worker.state, rig.worker.describe().lastExit?.reason]).toEqual([
      'ready',
      'The process exited with code 7',
    ])
  })
})

describe('the stop of a worker', () => {
  test('lets what it has finish, offers no slot meanwhile and is not started again', async () => {
    const rig = await Rig.ready()
    const { sink } = rig.run('a')
    const stopped = rig.worker.stop(1234)
    expect([rig.worker.state, rig.worker.freeSlots, rig.group.graces]).toEqual(['stopping', 0, [1234]])
    rig.group.answer(1)
    expect(sink.calls).toEqual(['whole 200 answer'])
    await rig.group.stopped()
    expect(await stopped).toBe(true)
    await rig.group.dies()
    await pass(60_000)
    expect([rig.worker.state, rig.groups.length]).toEqual(['stopped', 1])
  })

  test('fails what did not finish in time, and says that something was killed', async () => {
    const rig = await Rig.ready()
    const { sink } = rig.run('a')
    const stopped = rig.worker.stop(10)
    await rig.group.stopped(false)
    expect([await stopped, sink.calls]).toEqual([false, ['fail WORKER_LOST Worker died.']])
  })

  test('sends no pings any more', async () => {
    const rig = await Rig.ready()
    void rig.worker.stop(1000)
    await pass(100_000)
    expect([rig.group.sent, rig.group.kills]).toEqual([[], 0])
  })

  test('during its start: who waits for the handler is told', async () => {
    const rig = new Rig()
    const waiting = rig.worker.loaded
    void rig.worker.stop(1000)
    await rig.group.stopped()
    await expect(waiting).rejects.toMatchObject({ message: 'The worker was stopped' })
  })

  test('between two starts ends it at once', async () => {
    const rig = await Rig.ready()
    await rig.group.dies()
    expect(await rig.worker.stop(1000)).toBe(true)
    await pass(60_000)
    expect([rig.worker.state, rig.groups.length]).toEqual(['stopped', 1])
  })

  test.each(['died', 'did not load'])(
    'while what %s has not gone yet: it ends when that has, with all that it printed',
    async (how) => {
      const rig = new Rig()
      if (how === 'died') {
        await rig.group.loaded()
        rig.group.events.onDeath(GONE)
      } else {
        rig.group.connected()
        await rig.group.loadFails('HANDLER_FAILED', 'no weights')
      }
      let isStopped = false
      const stopped = rig.worker.stop(1000).then(() => (isStopped = true))
      await turns()
      rig.group.events.onOutput('stdout', 'last words', '')
      expect([isStopped, rig.worker.state, rig.log.at(-1)]).toEqual([
        false,
        'stopped',
        'info stdout last words',
      ])
      await rig.group.ends()
      await stopped
      await pass(60_000)
      expect([rig.worker.state, rig.groups.length]).toEqual(['stopped', 1])
    },
  )

  test('a kill while what died has not gone yet: nothing is started after it', async () => {
    const rig = await Rig.ready()
    rig.group.events.onDeath(GONE)
    const killed = rig.worker.kill()
    await rig.group.ends()
    await killed
    await pass(60_000)
    expect([rig.worker.state, rig.groups.length]).toEqual(['stopped', 1])
  })

  test.each(['at once', 'later'])(
    'a kill acts at once, and resolves when the processes, started %s, are gone',
    async (when) => {
      const rig = new Rig({}, (group) => (group.startsLate = when === 'later'))
      rig.group.connected()
      let isGone = false
      const killed = rig.worker.kill().then(() => (isGone = true))
      expect([rig.worker.state, rig.group.kills]).toEqual(['stopped', 1])
      await turns()
      expect(isGone).toBe(false)
      await rig.group.dies()
      await killed
      await pass(60_000)
      expect(rig.groups).toHaveLength(1)
    },
  )
})

test('a line that is a metric counts as one and is not logged', async () => {
  const rig = await Rig.ready()
  const reported = jest.spyOn(rig.model.metrics, 'reported')
  rig.group.events.onOutput(
    'stdout',
    '[METRICS]Items.Count:3|#ModelName:m,Level:Model|#hostname:h,1700000000',
    '',
  )
  expect([reported.mock.calls.length, rig.log]).toEqual([1, []])
})

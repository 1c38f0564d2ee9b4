import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import type { LoadMessage, ToWorker } from '../../protocol/messages.ts'
import type { ExitCause } from '../../frontend/workers/exit-cause.ts'
import { RankGroup } from '../../frontend/workers/rank-group.ts'
import type { Rank, RankEvents, RankOptions } from '../../frontend/workers/rank-process.ts'
import type { RankMessage } from '../../frontend/workers/worker-group.ts'
import { turns } from './fake-group.ts'

const LOAD = { type: 'load', modelName: 'm' } as LoadMessage

/** One process of a group, which the test plays. */
class FakeRank implements Rank {
  readonly number: number
  readonly pid: number
  readonly sent: ToWorker[] = []
  readonly signals: string[] = []
  readonly ready: Promise<void>
  readonly exited: Promise<ExitCause>
  readonly #events: RankEvents
  #connect!: () => void
  #fail!: (error: Error) => void
  #exit!: (cause: ExitCause) => void

  constructor({ rank }: RankOptions, events: RankEvents) {
    this.number = rank
    this.pid = 100 + rank
    this.#events = events
    this.ready = new Promise((resolve, reject) => {
      this.#connect = resolve
      this.#fail = reject
    })
    this.ready.catch(() => undefined)
    this.exited = new Promise((resolve) => (this.#exit = resolve))
  }

  get told(): string[] {
    return this.sent.map(({ type }) => type)
  }

  readonly channel = {
    unsentBytes: 0,
    send: (message: ToWorker): void => void this.sent.push(message),
  }

  kill(signal: 'SIGTERM' | 'SIGKILL'): void {
    this.signals.push(signal)
  }

  async connects(): Promise<void> {
    this.#connect()
    await turns()
  }

  async loads(error?: ServeError): Promise<void> {
    const methods = [this.number === 0 ? 'chatCompletions' : 'embeddings'] as const
    this.#events.onMessage(
      this.number,
      error === undefined
        ? { type: 'loaded', methods: [...methods] }
        : { type: 'loaded', error: error.toWire() },
    )
    await turns()
  }

  async exits(reason = 'The process exited with code 7', outOfMemory = false): Promise<void> {
    const publicCause = 'its worker exited with code 7'
    const cause = { at: new Date(0), reason, publicCause, stderr: ['last', 'words'], outOfMemory }
    this.#fail(new ServeError('WORKER_START_FAILED', reason))
    this.#events.onExit(this.number, cause)
    this.#exit(cause)
    await turns()
  }

  prints(line: string): void {
    this.#events.onOutput(this.number, 'stdout', line)
  }
}

class Rig {
  readonly ranks: FakeRank[] = []
  readonly deaths: string[] = []
  readonly output: string[] = []
  readonly messages: string[] = []
  connections = 0
  readonly group: RankGroup

  constructor(size: number, requestsToRankZeroOnly = false) {
    const ranks = Array.from(
      { length: size },
      (_, rank) => ({ rank, socketPath: `/nonexistent/${rank}` }) as RankOptions,
    )
    this.group = new RankGroup(
      {
        ranks,
        cleanUp: () => undefined,
        requestsToRankZeroOnly,
        takesBatchesAhead: true,
        load: LOAD,
        startupTimeoutMs: 60_000,
      },
      {
        onConnected: () => (this.connections += 1),
        onMessage: (rank, { type }) => this.messages.push(`${rank} ${type}`),
        itemsOf: () => () => undefined,
        onBroken: () => undefined,
        onUnusableDevice: () => undefined,
        onOutput: (stream, line, prefix) => this.output.push(`${stream} ${prefix}${line}`),
        onDeath: ({ reason }) => this.deaths.push(reason),
      },
      (options, events) => {
        const rank = new FakeRank(options, events)
        this.ranks.push(rank)
        return rank
      },
    )
  }

  static async loaded(size: number, requestsToRankZeroOnly = false): Promise<Rig> {
    const rig = new Rig(size, requestsToRankZeroOnly)
    const loaded = rig.group.load()
    for (const rank of rig.ranks) await rank.connects()
    for (const rank of rig.ranks) await rank.loads()
    await loaded
    for (const rank of rig.ranks) rank.sent.length = 0
    return rig
  }

  get signals(): string[][] {
    return this.ranks.map(({ signals }) => signals)
  }

  get told(): string[][] {
    return this.ranks.map(({ told }) => told)
  }
}

beforeEach(() => {
  jest.useFakeTimers()
})

afterEach(() => {
  jest.useRealTimers()
})

/** A promise as a test sees it now. */
function watched(promise: Promise<unknown>): { state: unknown } {
  const seen: { state: unknown } = { state: 'pending' }
  promise.then(
    (value) => (seen.state = value),
    (error: unknown) => (seen.state = (error as Error).message),
  )
  return seen
}

describe('loading', () => {
  test('begins in every rank when all are connected, and ends when all have loaded', async () => {
    const rig = new Rig(2)
    const loading = watched(rig.group.load())
    await rig.ranks[0]!.connects()
    expect([rig.connections, rig.told]).toEqual([0, [[], []]])
    await rig.ranks[1]!.connects()
    expect([rig.connections, rig.told]).toEqual([1, [['load'], ['load']]])
    await rig.ranks[1]!.loads()
    expect(loading.state).toBe('pending')
    await rig.ranks[0]!.loads()
    expect([loading.state, rig.group.methods]).toEqual([undefined, ['chatCompletions']])
  })

  test('fails with the first rank that fails', async () => {
    const rig = new Rig(2)
    const loading = watched(rig.group.load())
    for (const rank of rig.ranks) await rank.connects()
    await rig.ranks[1]!.loads(new ServeError('HANDLER_FAILED', 'no such module'))
    expect(loading.state).toBe('no such module')
  })

  test('fails when a rank ends, with its rank, its last words and what its death was', async () => {
    const rig = new Rig(2)
    const loading = rig.group.load()
    const seen = watched(loading)
    for (const rank of rig.ranks) await rank.connects()
    await rig.ranks[1]!.exits('The process was killed by SIGKILL', true)
    expect(seen.state).toBe('Rank 1: The process was killed by SIGKILL')
    await expect(loading).rejects.toMatchObject({ code: 'OUT_OF_MEMORY', detail: 'last\nwords' })
  })

  test('fails after startupTimeout, not before', async () => {
    const rig = new Rig(2)
    const loading = watched(rig.group.load())
    await rig.ranks[0]!.connects()
    jest.advanceTimersByTime(59_999)
    await turns()
    expect(loading.state).toBe('pending')
    jest.advanceTimersByTime(1)
    await turns()
    expect(loading.state).toBe('The worker was not loaded within 60 s (startupTimeout)')
  })
})

describe('requests', () => {
  const cancel: RankMessage = { type: 'cancel', id: 1, reason: 'client left' }

  test('go to every rank, and every rank has to finish', async () => {
    const rig = await Rig.loaded(3)
    rig.group.send(cancel)
    expect([rig.group.finishingRanks, rig.told]).toEqual([3, [['cancel'], ['cancel'], ['cancel']]])
  })

  test('go to rank 0 only where the ranks pass data among themselves', async () => {
    const rig = await Rig.loaded(3, true)
    rig.group.send(cancel)
    expect([rig.group.finishingRanks, rig.told]).toEqual([1, [['cancel'], [], []]])
  })

  test('pings and credit go to rank 0', async () => {
    const rig = await Rig.loaded(2)
    rig.group.sendToFirst({ type: 'ping', nonce: 1 })
    rig.group.sendToFirst({ type: 'credit', id: 1, bytes: 5 })
    expect(rig.told).toEqual([['ping', 'credit'], []])
  })
})

describe('one rank ends unasked', () => {
  test('the others are killed at once, and it is told once', async () => {
    const rig = await Rig.loaded(3)
    await rig.ranks[2]!.exits()
    expect(rig.deaths).toEqual(['Rank 2: The process exited with code 7'])
    expect(rig.signals).toEqual([['SIGKILL'], ['SIGKILL'], ['SIGKILL']])
    await rig.ranks[0]!.exits('The process was killed by SIGKILL')
    await rig.ranks[1]!.exits('The process was killed by SIGKILL')
    expect(rig.deaths).toHaveLength(1)
  })

  test('a plain worker has no ranks to name', async () => {
    const rig = await Rig.loaded(1)
    rig.ranks[0]!.prints('hello')
    await rig.ranks[0]!.exits()
    expect([rig.deaths, rig.output]).toEqual([['The process exited with code 7'], ['stdout hello']])
  })

  test('nothing is left when the last one has ended', async () => {
    const rig = await Rig.loaded(2)
    const left = watched(rig.group.exited())
    await rig.ranks[1]!.exits()
    expect(left.state).toBe('pending')
    await rig.ranks[0]!.exits()
    expect(left.state).toBeUndefined()
  })
})

describe('stop', () => {
  test('unloads every rank, and is clean when they leave in time', async () => {
    const rig = await Rig.loaded(2)
    const stopped = watched(rig.group.stop(5000))
    await turns()
    expect(rig.told).toEqual([['unload'], ['unload']])
    await rig.ranks[0]!.exits('The process exited with code 0')
    expect(stopped.state).toBe('pending')
    await rig.ranks[1]!.exits('The process exited with code 0')
    expect([stopped.state, rig.deaths, rig.signals]).toEqual([true, [], [[], []]])
    jest.advanceTimersByTime(60_000)
    expect(rig.signals).toEqual([[], []])
  })

  test('kills what is left after the grace, and says so', async () => {
    const rig = await Rig.loaded(2)
    const stopped = watched(rig.group.stop(5000))
    await turns()
    jest.advanceTimersByTime(4999)
    expect(rig.signals).toEqual([[], []])
    jest.advanceTimersByTime(1)
    expect(rig.signals).toEqual([['SIGKILL'], ['SIGKILL']])
    for (const rank of rig.ranks) await rank.exits()
    expect([stopped.state, rig.deaths]).toEqual([false, []])
  })

  test('where rank 0 has the requests the others stay until it has finished them', async () => {
    const rig = await Rig.loaded(2, true)
    void rig.group.stop(5000)
    await turns()
    expect(rig.told).toEqual([['unload'], []])
    await rig.ranks[0]!.exits()
    expect(rig.told).toEqual([['unload'], ['unload']])
  })

  test('of a group that is not connected yet needs no word of a rank', async () => {
    const rig = new Rig(2)
    rig.group.load().catch(() => undefined)
    await rig.ranks[0]!.connects()
    void rig.group.stop(5000)
    await turns()
    expect([rig.told, rig.signals]).toEqual([
      [[], []],
      [['SIGTERM'], ['SIGTERM']],
    ])
  })
})

import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { headerLine, headerValue, splitHeaders } from '../../common/headers.ts'
import { ServeError } from '../../common/errors.ts'
import { failures, HEADERS, newJob, sequenceOf, Setup } from './sequence-setup.ts'

beforeEach(() => {
  jest.useFakeTimers()
  failures.clear()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a sequence', () => {
  test('stays on its worker, and new ones go to the worker with the fewest', () => {
    const setup = new Setup()
    const [a, b] = [setup.round('a'), setup.round('b')]
    expect(a).not.toBe(b)
    for (const id of ['a', 'b', 'b', 'a', 'a']) expect(setup.round(id)).toBe(id === 'a' ? a : b)
  })

  test('waits for its worker though another is free', () => {
    const setup = new Setup()
    const first = setup.add('a')
    const worker = setup.workerOf(first)!
    const second = setup.add('a')
    expect(setup.workerOf(second)).toBeUndefined()
    worker.answer(first)
    expect(setup.workerOf(second)).toBe(worker)
  })

  test('that ended begins anew on the worker that got no new one for longest', () => {
    const setup = new Setup()
    const first = setup.round('a')
    jest.advanceTimersByTime(1000)
    expect(setup.queue.openSequences).toBe(0)
    expect(setup.round('a')).not.toBe(first)
  })

  test('ends when it was idle for too long, and every job begins that time anew', () => {
    const setup = new Setup()
    for (let i = 0; i < 3; i += 1) {
      setup.round('a')
      jest.advanceTimersByTime(999)
      expect(setup.queue.openSequences).toBe(1)
    }
    jest.advanceTimersByTime(1)
    expect(setup.queue.openSequences).toBe(0)
  })

  test('is not idle while a job of it runs', () => {
    const setup = new Setup()
    const job = setup.add('a')
    jest.advanceTimersByTime(5000)
    expect(setup.queue.openSequences).toBe(1)
    setup.answer(job)
    jest.advanceTimersByTime(1000)
    expect(setup.queue.openSequences).toBe(0)
  })

  test('is not idle while a job runs that came after a pause', () => {
    const setup = new Setup()
    setup.round('a')
    jest.advanceTimersByTime(999)
    setup.add('a')
    jest.advanceTimersByTime(5000)
    expect(setup.queue.openSequences).toBe(1)
  })

  test('takes no more jobs when its time is over; those that it has are finished', () => {
    const setup = new Setup({ maxLifeMs: 300 })
    const [running, waiting] = [setup.add('a'), setup.add('a')]
    jest.advanceTimersByTime(300)
    setup.refused('a')
    setup.answer(running)
    setup.answer(waiting)
    expect(setup.queue.openSequences).toBe(0)
    setup.round('a')
  })

  test('ends with the request that says it is the last', () => {
    const setup = new Setup()
    setup.round('a')
    const lastJob = setup.add('a', { [HEADERS.end]: 'True' })
    setup.refused('a')
    setup.answer(lastJob)
    expect(setup.queue.openSequences).toBe(0)
  })

  test('ends when the handler says so: what waits is refused', () => {
    const setup = new Setup()
    setup.round('b')
    const [job, waiting] = [setup.add('a'), setup.add('a')]
    expect(setup.answer(job, { [HEADERS.end]: 'a; b;c' })).toMatchObject({ [HEADERS.id]: 'a' })
    expect(failures.get(waiting)).toBe('NO_WORKER')
    expect(setup.queue.openSequences).toBe(0)
    expect(setup.queue.pending).toBe(0)
  })

  test('may have as many waiting jobs as it is allowed, beside the one that runs', () => {
    const setup = new Setup({ maxWaiting: 2 })
    const jobs = [setup.add('a'), setup.add('a'), setup.add('a')]
    setup.refused('a')
    jobs[1]!.cancel()
    setup.add('a')
    expect(setup.queue.pending).toBe(2)
  })

  test('is refused when there are as many as may be', () => {
    const setup = new Setup({ maxSequences: 2 })
    setup.round('a')
    setup.round('b')
    setup.refused('c')
    setup.refused()
    jest.advanceTimersByTime(1000)
    setup.round('c')
  })

  test('whose only job was cancelled while it waited ends when idle', () => {
    const setup = new Setup({}, 1)
    setup.add('a')
    setup.add('b').cancel()
    expect(setup.queue.openSequences).toBe(2)
    jest.advanceTimersByTime(1000)
    expect(setup.queue.openSequences).toBe(1)
  })

  test('whose waiting job was cancelled is handed to no worker, and is no backlog', () => {
    const setup = new Setup({}, 1)
    setup.round('a')
    const running = setup.add('b')
    const [bound, unbound] = [setup.add('a'), setup.add('c')]
    expect(setup.queue.backlog().jobs).toBe(1)
    bound.cancel('client left')
    unbound.cancel('client left')
    expect(setup.queue.backlog().jobs).toBe(0)
    setup.answer(running)
    setup.round('a')
    expect(setup.started).not.toContain(bound)
  })

  test('goes on only when the handler has ended a cancelled job', () => {
    const setup = new Setup()
    const [first, second] = [setup.add('a'), setup.add('a')]
    first.cancel()
    expect(setup.workerOf(second)).toBeUndefined()
    setup.workerOf(first)!.release(first)
    expect(setup.workerOf(second)).toBeDefined()
  })
})

describe('the worker of a sequence', () => {
  /** What its worker is told: each id of a job, and of a sequence that ended. */
  function told(setup: Setup): string[] {
    const [worker] = setup.workers
    const all: string[] = []
    const { onRun } = worker!
    worker!.onRun = (jobs) => {
      onRun(jobs)
      all.push(...jobs.map(sequenceOf))
    }
    worker!.onSequenceEnd = (id) => void all.push(`end of ${id}`)
    return all
  }

  test.each<[string, (setup: Setup) => void]>([
    ['its idle time', () => jest.advanceTimersByTime(1000)],
    ['its time limit', () => jest.advanceTimersByTime(600)],
    ['its client', (setup) => setup.answer(setup.add('a', { [HEADERS.end]: 'true' }))],
    ['the handler', (setup) => setup.answer(setup.add('a'), { [HEADERS.end]: 'a' })],
  ])('is told of its end, after its last job: by %s', (how, end) => {
    const setup = new Setup({ maxLifeMs: how === 'its time limit' ? 600 : 0 }, 1)
    const all = told(setup)
    setup.round('a')
    setup.round('b')
    end(setup)
    setup.add('a')
    expect(all.filter((line) => line.endsWith('a')).slice(-2)).toEqual(['end of a', 'a'])
    expect(all.filter((line) => line === 'end of a')).toHaveLength(1)
  })

  test('hears nothing of one that it got no job of', () => {
    const setup = new Setup({}, 1)
    const all = told(setup)
    setup.add('a')
    setup.add('b').cancel()
    jest.advanceTimersByTime(1000)
    expect([all, setup.queue.openSequences]).toEqual([['a'], 1])
  })

  test.each([false, true])('is told before the job that begins it anew (continuous: %s)', (overlap) => {
    const setup = new Setup({ overlap }, 1, 2)
    const all = told(setup)
    const running = setup.add('a')
    const [second, anew] = [setup.add('a'), setup.add('a', { [HEADERS.start]: 'true' })]
    if (overlap) setup.workers[0]!.answer(running, true)
    setup.answer(running)
    expect(all).toEqual(['a', 'a'])
    setup.answer(second)
    expect(all).toEqual(['a', 'a', 'end of a', 'a'])
    setup.answer(anew)
    setup.round('a')
    expect(all).toEqual(['a', 'a', 'end of a', 'a', 'a'])
  })

  test('has it for a whole time limit more when it begins anew', () => {
    const setup = new Setup({ maxLifeMs: 900 }, 1)
    setup.round('a')
    jest.advanceTimersByTime(800)
    setup.answer(setup.add('a', { [HEADERS.start]: 'true' }))
    jest.advanceTimersByTime(800)
    expect(setup.queue.openSequences).toBe(1)
    jest.advanceTimersByTime(100)
    expect(setup.queue.openSequences).toBe(0)
  })

  test('gets nothing while a job that begins it anew waits alone for a stream of it to end', () => {
    const setup = new Setup({ overlap: true }, 1, 3)
    const stream = setup.add('a')
    setup.workers[0]!.answer(stream, true)
    const other = setup.add('z')
    setup.workers[0]!.slots = 2
    const between = setup.add('a')
    const anew = setup.add('a', { [HEADERS.start]: 'true' })
    between.cancel()
    setup.answer(other)
    expect(setup.workerOf(anew)).toBeUndefined()
    setup.answer(stream)
    expect(setup.workerOf(anew)).toBeDefined()
  })
})

describe('ids', () => {
  test('a job without one begins a sequence; the handler sees id and start, the client the id', () => {
    const setup = new Setup()
    const job = setup.add()
    const headers = splitHeaders(job.request.headers)
    expect(headers).toEqual({ [HEADERS.id]: expect.stringMatching(/^ts-seq-/), [HEADERS.start]: 'true' })
    expect(setup.answer(job)).toEqual({ [HEADERS.id]: headers[HEADERS.id] })
  })

  test('names count in any letter case, and the handler finds the exact one', () => {
    const setup = new Setup()
    const job = newJob(undefined, { 'Seq-ID': 'a' })
    setup.queue.add(job)
    expect(splitHeaders(job.request.headers)).toEqual({ 'Seq-ID': 'a', [HEADERS.id]: 'a' })
  })

  test.each([
    ['id', 'mine', 'SEQ-ID', 'theirs'],
    ['id', 'mine', 'seq-id', 'theirs'],
    ['start', 'false', 'Seq-Start', 'true'],
    ['end', 'false', 'Seq-End', 'true'],
  ] as const)(
    'two values of the header %s are refused, one of which is checked and the other used',
    (...row) => {
      const [kind, one, name, other] = row
      for (const [first, second] of [
        [headerLine(HEADERS[kind], one), headerLine(name, other)],
        [headerLine(name, other), headerLine(HEADERS[kind], one)],
      ] as const) {
        const setup = new Setup()
        const job = newJob()
        job.request.headers = first + second
        const refusal = `The header ${HEADERS[kind]} must be there once, but has two values`
        expect(() => setup.queue.add(job)).toThrow(
          expect.objectContaining({ code: 'INVALID_ARGUMENT', message: refusal }),
        )
        expect(setup.queue.openSequences).toBe(0)
      }
    },
  )

  test('the handler finds the values that hold, under the exact names, whatever empty ones come after', () => {
    const setup = new Setup()
    const job = newJob()
    for (const [name, value] of [
      ['Seq-ID', 'a'],
      ['seq-id', 'a'],
      ['SEQ-ID', ''],
      ['Seq-End', 'true'],
      ['seq-end', ''],
      ['SEQ-START', 'true'],
    ] as const)
      job.request.headers += headerLine(name, value)
    setup.queue.add(job)
    const { headers } = job.request
    expect(splitHeaders(headers)).toMatchObject({ 'seq-id': 'a', 'seq-start': 'true', 'seq-end': 'true' })
    expect(Object.values(HEADERS).map((name) => headerValue(headers, name))).toEqual(['a', 'true', 'true'])
    expect(setup.queue.hasSequence('a')).toBe(true)
  })

  test('what the handler says of the id stands', () => {
    const setup = new Setup()
    expect(setup.answer(setup.add('a'), { 'SEQ-id': 'mine' })).toEqual({ 'SEQ-id': 'mine' })
  })
})

describe('batches', () => {
  test('hold one job of each sequence, longest waiting first', () => {
    const setup = new Setup({ batchSize: 2 }, 1)
    const blocker = setup.add('z')
    const [a1, , b1, c1] = ['a', 'a', 'b', 'c'].map((id) => setup.add(id))
    setup.answer(blocker)
    expect(setup.workers[0]!.running).toEqual([a1, b1])
    setup.answer(a1!)
    expect(setup.workers[0]!.running).toEqual([b1])
    setup.answer(b1!)
    expect(setup.workers[0]!.running[0]).toBe(c1)
  })

  test('do not wait for a sequence that has ended', () => {
    const setup = new Setup({ batchSize: 2, maxBatchDelay: 100_000 }, 1)
    setup.round('gone')
    jest.advanceTimersByTime(1000)
    expect(setup.queue.openSequences).toBe(0)
    setup.add('a')
    expect(setup.started).toHaveLength(2)
  })

  test('wait maxBatchDelay for sequences that could still join', () => {
    const setup = new Setup({ batchSize: 4 }, 1)
    setup.round('a')
    const waiting = setup.add('b')
    expect(setup.workerOf(waiting)).toBeUndefined()
    jest.advanceTimersByTime(99)
    expect(setup.workerOf(waiting)).toBeUndefined()
    jest.advanceTimersByTime(2)
    expect(setup.workerOf(waiting)).toBeDefined()
  })

  test('of jobs that waited for their worker may fill for maxBatchDelay once it is free', () => {
    const setup = new Setup({ batchSize: 2 }, 1)
    const [worker] = setup.workers
    for (const id of ['a', 'b', 'c']) {
      const job = setup.add(id)
      jest.advanceTimersByTime(101)
      setup.answer(job)
    }
    const first = setup.add('a')
    jest.advanceTimersByTime(101)
    expect(worker!.running).toEqual([first])
    const b = setup.add('b')
    jest.advanceTimersByTime(500)
    setup.answer(first)
    jest.advanceTimersByTime(99)
    expect(worker!.running).toEqual([])
    const c = setup.add('c')
    expect(worker!.running).toEqual([b, c])
  })

  test('do not wait when every sequence of the worker is in them', () => {
    const setup = new Setup({ batchSize: 4 }, 1)
    expect(setup.workerOf(setup.add('a'))).toBeDefined()
  })
})

describe('with continuous batching', () => {
  test('the next job follows when the one before has begun to answer', () => {
    const setup = new Setup({ overlap: true }, 1, 2)
    const [first, second, third] = [setup.add('a'), setup.add('a'), setup.add('a')]
    expect(setup.workers[0]!.running).toEqual([first])
    setup.workers[0]!.answer(first, true)
    expect(setup.workers[0]!.running).toEqual([first, second])
    setup.workers[0]!.answer(second)
    expect(setup.workers[0]!.running).toEqual([first, third])
  })
})

describe('a worker that dies', () => {
  test('ends its sequences: what waits fails, the others go on, and the id may begin anew', () => {
    const setup = new Setup()
    const [a1, b1] = [setup.add('a'), setup.add('b')]
    const [a2, b2] = [setup.add('a'), setup.add('b')]
    const dead = setup.workerOf(a1)!
    setup.crash(dead)
    expect([...failures.keys()].sort()).toEqual([a2, a1].sort())
    setup.answer(b1)
    setup.answer(b2)
    expect(setup.workerOf(setup.add('a'))).toBeDefined()
  })

  test('takes nothing with it that no worker has seen', () => {
    const setup = new Setup({ batchSize: 8 }, 1)
    setup.round('a')
    const waiting = setup.add('b')
    setup.crash(setup.workers[0]!)
    expect(failures.size).toBe(0)
    expect(setup.workerOf(waiting)).toBeDefined()
  })
})

describe('job tickets', () => {
  test('are there while a worker is free, for a sequence only while its own is', () => {
    const setup = new Setup()
    expect(setup.queue.couldStart(newJob('a'))).toBe(true)
    const running = setup.add('a')
    expect(setup.queue.couldStart(newJob('a'))).toBe(false)
    expect(setup.queue.couldStart(newJob('b'))).toBe(true)
    setup.add('b')
    expect(setup.queue.couldStart(newJob())).toBe(false)
    setup.answer(running)
    expect(setup.queue.couldStart(newJob('a'))).toBe(true)
    expect(setup.queue.couldStart(newJob('b'))).toBe(false)
  })
})

test('a describe needs no sequence', () => {
  const setup = new Setup({ maxSequences: 1 })
  setup.round('a')
  const job = newJob()
  job.request.method = 'describe'
  setup.queue.add(job)
  setup.answer(job)
  expect(setup.queue.openSequences).toBe(1)
})

test('a describe that waits takes no place from the sequences', () => {
  const { queue, ...setup } = new Setup({ maxSequences: 2, maxWaiting: 3 }, 0)
  const waiting = newJob()
  waiting.request.method = 'describe'
  queue.add(waiting)
  expect([queue.pending, queue.remainingCapacity, setup.started]).toEqual([1, 6, []])
})

test('failAll ends all that waits and leaves no timer behind', () => {
  const setup = new Setup({ maxLifeMs: 9999 }, 1)
  const running = setup.add('a')
  const waiting = [setup.add('a'), setup.add('b'), setup.add('c')]
  setup.queue.failAll(new ServeError('SHUTTING_DOWN', 'bye'))
  expect(waiting.map((job) => failures.get(job))).toEqual(waiting.map(() => 'SHUTTING_DOWN'))
  setup.answer(running)
  setup.queue.close()
  expect(jest.getTimerCount()).toBe(0)
})

test('a job that shares no batch goes by itself, at once', () => {
  const setup = new Setup({ batchSize: 4, maxBatchDelay: 100 }, 1, 4)
  const ids = ['a', 'b', 'c']
  for (const id of ids) setup.add(id)
  jest.advanceTimersByTime(100)
  const [worker] = setup.workers
  for (const job of [...worker!.running]) setup.answer(job)
  const before = worker!.batches.length
  const alone = newJob('b', {}, true)
  setup.add('a')
  setup.queue.add(alone)
  setup.add('c')
  jest.advanceTimersByTime(100)
  const batches = worker!.batches.slice(before).map(({ jobs }) => [...jobs])
  expect(batches.find((jobs) => jobs.includes(alone))).toEqual([alone])
  expect(batches.flat()).toHaveLength(3)
})

describe('a worker that takes no new sequences', () => {
  test('keeps its own, is bound until they end, and what waits for it alone is no backlog', () => {
    const setup = new Setup()
    const first = setup.add('a')
    const worker = setup.workerOf(first)!
    setup.queue.serve(setup.workers.filter((other) => other !== worker))
    const second = setup.add('a')
    expect(setup.queue.pending).toBe(1)
    expect(setup.queue.backlog()).toEqual({ jobs: 0, since: undefined })
    worker.answer(first)
    expect(setup.workerOf(second)).toBe(worker)
    worker.answer(second)
    const others = [setup.add('b'), setup.add('c')]
    expect(others.map((job) => setup.workerOf(job) === worker)).toEqual([false, false])
    expect(setup.queue.backlog()).toEqual({ jobs: 1, since: others[1]!.createdAt })
    expect(setup.queue.isBound(worker)).toBe(true)
    jest.advanceTimersByTime(1000)
    expect(setup.queue.isBound(worker)).toBe(false)
  })
})

describe('the id of a sequence', () => {
  test('has at most 1,024 characters', () => {
    const setup = new Setup()
    setup.round('a'.repeat(1024))
    expect(() => setup.add('a'.repeat(1025))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    expect(setup.queue.openSequences).toBe(1)
  })

  test.each([
    ';',
    'x0;a',
    'a;',
    ' a',
    'a ',
    '\ta',
    'a\u00a0',
    '\ufeffa',
    'a\u0000b',
    'a\tb',
    'a\rb',
    'a\u007f',
    'a\u0085b',
  ])('is not %j, of which a handler that ends it would end another one', (id) => {
    const setup = new Setup()
    expect(() => setup.add(id)).toThrow(
      expect.objectContaining({
        code: 'INVALID_ARGUMENT',
        message:
          'The id of a sequence must have no semicolon, no control character, and no blank at either end',
      }),
    )
    expect(setup.queue.openSequences).toBe(0)
  })

  test.each(['a b', 'a,b', 'ä:/=?#', '东京', '__proto__'])('may be %j', (id) => {
    const setup = new Setup()
    setup.answer(setup.add(id), { [HEADERS.end]: id })
    expect([setup.queue.openSequences, setup.started.length]).toEqual([0, 1])
  })

  test('is ended by a handler only for its sender', () => {
    const setup = new Setup({}, 4)
    const [mine, second, theirs] = [
      setup.add('a', {}, 'ann'),
      setup.add('b', {}, 'ann'),
      setup.add('c', {}, 'bob'),
    ]
    const waiting = setup.add('c', {}, 'bob')
    setup.answer(second)
    setup.answer(mine, { [HEADERS.end]: 'a;b;c' })
    expect(setup.queue.openSequences).toBe(1)
    expect(failures.get(waiting)).toBeUndefined()
    setup.answer(theirs)
    expect(setup.workerOf(waiting)).toBeDefined()
  })

  test('is of use to its sender only, while the sequence is open', () => {
    const setup = new Setup()
    const answer = (identity?: string): void => void setup.answer(setup.add('a', {}, identity))
    answer('ann')
    for (const other of ['bob', undefined])
      expect(() => setup.add('a', {}, other)).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
    answer('ann')
    jest.advanceTimersByTime(1000)
    answer('bob')
    expect(() => setup.add('a', {}, 'ann')).toThrow(/another API key/)
  })
})

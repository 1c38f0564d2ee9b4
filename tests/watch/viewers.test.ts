import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { EventTopic, ModelOverview, ServerEvents } from '../../common/server-events.ts'
import { ANYBODY, type Principal } from '../../frontend/auth/principal.ts'
import { Job } from '../../frontend/jobs/job.ts'
import type { ReplySink } from '../../frontend/jobs/reply-sink.ts'
import { LogTail } from '../../frontend/observe/logs/logger.ts'
import { type EventOutlet, MAX_VIEWERS, Viewers } from '../../frontend/watch/viewers.ts'
import { nothingToWatch } from '../support/nothing-to-watch.ts'

beforeEach(() => {
  jest.useFakeTimers()
})
afterEach(() => {
  jest.useRealTimers()
})

/** Milliseconds between two overviews. */
const SECOND = 1000

class FakeOutlet implements EventOutlet {
  isFull = false
  ended = false
  why: string | undefined
  readonly sent: Buffer[] = []

  send(bytes: Buffer): void {
    this.sent.push(bytes)
  }

  end(): void {
    this.ended = true
  }

  cut(why: { message: string }): void {
    this.why = why.message
  }
}

const query = (...topics: EventTopic[]) => ({ topics: new Set(topics), requests: 10 })

function job(requestId: string, modelName: string): Job {
  const never = (): never => {
    throw new Error('Not expected')
  }
  const sink: ReplySink = { whole: never, open: never, write: never, close: never, fail: never }
  return new Job({ requestId, modelName, method: 'handle', headers: '', parts: [] }, sink)
}

const model = (modelName: string): ModelOverview => ({ modelName }) as ModelOverview

/** A log whose first lines say `0`, `1`, ... */
class NumberedLog extends LogTail {
  constructor(lines: number) {
    super()
    this.say(lines)
  }

  /** Adds so many more. */
  say(lines = 1): void {
    for (let i = 0; i < lines; i += 1)
      this.add(JSON.stringify({ level: 30, time: 0, msg: String(this.written) }))
  }
}

function parsed<Topic extends EventTopic>(topic: Topic, bytes: Buffer | undefined): ServerEvents[Topic] {
  const [, name, data] = /^event: (\w+)\ndata: (.*)\n\n$/.exec(String(bytes)) ?? []
  expect(name).toBe(topic)
  return JSON.parse(data!) as ServerEvents[Topic]
}

/** The messages of each event of the log. */
function linesOf({ sent }: FakeOutlet): string[][] {
  return sent.map((bytes) => parsed('log', bytes).lines.map(({ message }) => message))
}

/** A key for management, which ends when it is revoked. */
function keyOf(name: string): Principal & { revoked: boolean } {
  return {
    kind: 'api key',
    name,
    seesAll: false,
    revoked: false,
    sees: () => true,
    allows() {
      return !this.revoked
    },
  }
}

test('viewers of the same get the same bytes, and nothing runs when the last has left', () => {
  const overviews = jest.fn(() => [])
  const viewers = new Viewers({ ...nothingToWatch(), models: { ...nothingToWatch().models, overviews } })
  expect([viewers.isActive, overviews.mock.calls.length]).toEqual([false, 0])
  const [one, two] = [new FakeOutlet(), new FakeOutlet()]
  const leave = [one, two].map((outlet) => viewers.watch(ANYBODY, query('overview'), outlet))
  jest.advanceTimersByTime(SECOND)
  expect(one.sent).toHaveLength(2)
  expect(one.sent[1]).toBe(two.sent[1])
  expect(overviews).toHaveBeenCalledTimes(3)
  for (const each of leave) each()
  expect([viewers.isActive, jest.getTimerCount()]).toEqual([false, 0])
})

test('a viewer that does not read gets nothing more, and is disconnected after a minute', () => {
  const viewers = new Viewers(nothingToWatch())
  const [stuck, other] = [new FakeOutlet(), new FakeOutlet()]
  for (const outlet of [stuck, other]) viewers.watch(ANYBODY, query('overview', 'requests'), outlet)
  stuck.isFull = true
  jest.advanceTimersByTime(59 * SECOND)
  expect([stuck.sent.length, stuck.why, other.sent.length]).toEqual([2, undefined, 120])
  jest.advanceTimersByTime(2 * SECOND)
  expect(stuck.why).toBe('The viewer does not read')
  expect(viewers.isActive).toBe(true)
})

test('a viewer sees everything until its key ends', () => {
  const overviews = (): ModelOverview[] => [model('one'), model('two')]
  const failure = { id: 'f-1', at: '2026-01-02T03:04:05.000Z', reason: 'Not an archive' }
  const failed = [{ modelName: 'bad', url: 'bad.mar', failure }]
  const jobs = [job('a', 'one'), job('b', 'two')]
  const viewers = new Viewers({
    ...nothingToWatch(),
    models: { ...nothingToWatch().models, overviews, failedOverviews: () => failed },
    jobs,
  })
  const key = keyOf('k')
  const [own, other] = [new FakeOutlet(), new FakeOutlet()]
  const end = jest.spyOn(own, 'end')
  viewers.watch(key, query('overview', 'requests'), own)
  const leave = viewers.watch(ANYBODY, query('requests'), other)
  const { models, failed: unloaded, server } = parsed('overview', own.sent[0])
  expect(unloaded).toEqual(failed)
  expect([models.map(({ modelName }) => modelName), server.openRequests]).toEqual([['one', 'two'], 2])
  expect(own.sent[1]).toBeDefined()
  key.revoked = true
  jest.advanceTimersByTime(SECOND)
  expect([own.ended, own.sent.length, other.sent.length]).toEqual([true, 2, 2])
  expect(end).toHaveBeenCalledTimes(1)
  leave()
  expect(viewers.isActive).toBe(false)
})

test('a stream without news gets a comment every 15 s, so that no proxy closes it', () => {
  const viewers = new Viewers(nothingToWatch())
  const outlet = new FakeOutlet()
  viewers.watch(ANYBODY, query('log'), outlet)
  jest.advanceTimersByTime(61 * SECOND)
  expect(outlet.sent.map(String)).toEqual(Array(4).fill(': keep-alive\n\n'))
})

test('a log without new lines is silent too', () => {
  const viewers = new Viewers({ ...nothingToWatch(), logTail: new NumberedLog(3) })
  const outlet = new FakeOutlet()
  viewers.watch(ANYBODY, query('log'), outlet)
  jest.advanceTimersByTime(31 * SECOND)
  const [first, ...rest] = outlet.sent
  expect(parsed('log', first).lines).toHaveLength(3)
  expect(rest.map(String)).toEqual(Array(2).fill(': keep-alive\n\n'))
})

test('each line of the log is sent once', () => {
  const logTail = new NumberedLog(2)
  const viewers = new Viewers({ ...nothingToWatch(), logTail })
  const outlet = new FakeOutlet()
  viewers.watch(ANYBODY, query('log'), outlet)
  for (let i = 0; i < 2; i += 1) {
    logTail.say()
    jest.advanceTimersByTime(SECOND / 4)
  }
  expect(linesOf(outlet)).toEqual([['0', '1'], ['2'], ['3']])
})

test('a new viewer gets the lines before it, where an old one gets the new line in the same tick', () => {
  const logTail = new NumberedLog(2)
  const viewers = new Viewers({ ...nothingToWatch(), logTail })
  const watch = (): FakeOutlet => {
    const outlet = new FakeOutlet()
    viewers.watch(ANYBODY, query('log'), outlet)
    return outlet
  }
  const old = watch()
  jest.advanceTimersByTime(SECOND)
  const newcomers = [watch(), watch(), watch()]
  logTail.say()
  jest.advanceTimersByTime(SECOND / 4)
  expect(linesOf(old)).toEqual([['0', '1'], ['2']])
  expect(linesOf(newcomers[1]!)).toEqual([['0', '1'], ['2']])
  expect(linesOf(newcomers[2]!)).toEqual([['0', '1', '2']])
})

test('when the server ends, its viewers see it once more, their streams end, and nothing runs', () => {
  const viewers = new Viewers(nothingToWatch())
  const [one, full] = [new FakeOutlet(), new FakeOutlet()]
  for (const outlet of [one, full]) viewers.watch(ANYBODY, query('overview'), outlet)
  full.isFull = true
  viewers.close()
  expect([one, full].map(({ sent, ended }) => [sent.length, ended])).toEqual([
    [2, true],
    [1, true],
  ])
  expect([viewers.isActive, jest.getTimerCount()]).toEqual([false, 0])
  expect(() => viewers.watch(ANYBODY, query('overview'), one)).toThrow(
    expect.objectContaining({ code: 'SHUTTING_DOWN' }),
  )
})

test('open requests come oldest first', () => {
  const old = job('old', 'm')
  jest.advanceTimersByTime(SECOND)
  const outlet = new FakeOutlet()
  new Viewers({ ...nothingToWatch(), jobs: [job('new', 'm'), old] }).watch(ANYBODY, query('requests'), outlet)
  expect(outlet.sent[0]!.toString().match(/"id":"(old|new)"/g)).toEqual(['"id":"old"', '"id":"new"'])
})

test('each open request is described once in a moment, however many of them each viewer wants', () => {
  let reads = 0
  const jobs = Array.from({ length: 50 }, (_, i) => job(`r${i}`, 'm'))
  for (const each of jobs)
    Object.defineProperty(each, 'bytes', {
      get: () => {
        reads += 1
        return 7
      },
    })
  const viewers = new Viewers({ ...nothingToWatch(), jobs })
  const limits = [0, 1, 2, 20, 10, 49, 50, 60]
  const outlets = limits.map((requests) => {
    const outlet = new FakeOutlet()
    viewers.watch(ANYBODY, { topics: new Set<EventTopic>(['requests']), requests }, outlet)
    return outlet
  })
  jest.advanceTimersByTime(SECOND / 4) // until all have been shown something
  expect(outlets.map(({ sent }) => sent.length)).toEqual(limits.map(() => 1))
  reads = 0
  jest.advanceTimersByTime(SECOND)
  expect(reads).toBe(50)
  const events = outlets.map(({ sent }) => parsed('requests', sent[1]))
  expect(events.map(({ total, requests }) => [total, requests.length])).toEqual(
    limits.map((limit) => [50, Math.min(limit, 50)]),
  )
  expect(events[3]!.requests.map(({ id }) => id)).toEqual(
    jobs.slice(0, 20).map(({ request }) => request.requestId),
  )
})

test('many new viewers at once: two are shown everything, and the next tick makes it once for the others', () => {
  const overviews = jest.fn(() => [])
  const viewers = new Viewers({ ...nothingToWatch(), models: { ...nothingToWatch().models, overviews } })
  const outlets = Array.from({ length: 20 }, () => new FakeOutlet())
  for (const outlet of outlets) viewers.watch(ANYBODY, query('overview'), outlet)
  expect([overviews.mock.calls.length, outlets.flatMap(({ sent }) => sent).length]).toEqual([2, 2])
  jest.advanceTimersByTime(SECOND / 4)
  expect(overviews).toHaveBeenCalledTimes(3)
  expect(outlets.slice(2).every(({ sent }) => sent.length === 1 && sent[0] === outlets[2]!.sent[0])).toBe(
    true,
  )
})

test('who connects again and again is shown everything no more often than the ticks allow', () => {
  const overviews = jest.fn(() => [])
  const viewers = new Viewers({ ...nothingToWatch(), models: { ...nothingToWatch().models, overviews } })
  for (let round = 0; round < 1000; round++) {
    viewers.watch(ANYBODY, query('overview'), new FakeOutlet())()
    jest.advanceTimersByTime(1)
  }
  expect(overviews).toHaveBeenCalledTimes(8)
  const later = new FakeOutlet()
  viewers.watch(ANYBODY, query('overview'), later)
  expect(later.sent).toHaveLength(1)
})

test('one key has half of the places, and a place is free again when its viewer leaves', () => {
  const viewers = new Viewers(nothingToWatch())
  const watch = (principal: Principal) => viewers.watch(principal, query('overview'), new FakeOutlet())
  const refused = (who: string) => {
    const message = `${who} viewers, and more are not supported. Close one of them, then try again.`
    return expect.objectContaining({ code: 'RATE_LIMITED', message })
  }
  const leave = Array.from({ length: MAX_VIEWERS / 2 }, () => watch(keyOf('greedy')))
  expect(() => watch(keyOf('greedy'))).toThrow(refused(`This key has ${MAX_VIEWERS / 2}`))
  for (let i = leave.length; i < MAX_VIEWERS; i++) watch(ANYBODY)
  expect(() => watch(keyOf('other'))).toThrow(refused(`This server has ${MAX_VIEWERS}`))
  leave[0]!()
  watch(keyOf('other'))
})

test('what breaks one viewer breaks no other', () => {
  const viewers = new Viewers(nothingToWatch())
  const [broken, other] = [new FakeOutlet(), new FakeOutlet()]
  viewers.watch(ANYBODY, query('overview'), broken)
  const leave = viewers.watch(ANYBODY, query('overview'), other)
  const cut = jest.spyOn(broken, 'cut')
  broken.send = () => {
    throw new Error('gone')
  }
  jest.advanceTimersByTime(2 * SECOND)
  expect([broken.why, other.sent.length]).toEqual(['Internal server error', 3])
  expect(cut).toHaveBeenCalledTimes(1)
  leave()
  expect(viewers.isActive).toBe(false)
})

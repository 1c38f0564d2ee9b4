import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { ScalingRule, type ScalingSettings, type ScalingState } from '../../frontend/models/autoscaler.ts'

const SETTINGS: ScalingSettings = {
  targetQueueTime: 500,
  scaleUpInterval: 5000,
  scaleDownAfter: 60_000,
  scaleToZeroAfter: 300_000,
}
const LOOK_MS = 250

/** One worker of one to eight, which serves and has nothing to do. */
const QUIET: ScalingState = {
  ...{ now: 0, minWorkers: 1, maxWorkers: 8 },
  ...{ wanted: 1, ready: 1, starting: 0, failing: false, leaving: 0 },
  ...{ slots: 1, busy: 0, jobsPerWorker: 1 },
  ...{ waiting: 0, waited: 0, idle: true, ended: 0 },
}

/** Workers that all serve, each with one slot. */
function serving(count: number, more: Partial<ScalingState> = {}): ScalingState {
  return { ...QUIET, wanted: count, ready: count, slots: count, ...more }
}

/** More than the queue should have, with every slot in use. */
function overloaded(count: number, more: Partial<ScalingState> = {}): ScalingState {
  return serving(count, { busy: count, waiting: 100, waited: 501, idle: false, ...more })
}

/** Looks at the same state every 250 ms until the answer is another, and returns when, and the answer. */
function firstChange(
  rule: ScalingRule,
  state: ScalingState,
  untilMs = 1_000_000,
): [at: number, next: number] | undefined {
  for (let now = state.now; now <= untilMs; now += LOOK_MS) {
    const next = rule.next({ ...state, now })
    if (next !== state.wanted) return [now, next]
  }
  return undefined
}

describe('more workers', () => {
  test('come when a request waits for longer than the target while all slots are in use', () => {
    const rule = new ScalingRule(SETTINGS)
    expect(rule.next(overloaded(1, { waited: 500 }))).toBe(1)
    expect(rule.next(overloaded(1, { waited: 501 }))).toBe(2)
  })

  test('do not come for a batch that fills while a slot is free', () => {
    expect(new ScalingRule(SETTINGS).next(overloaded(2, { busy: 1, waited: 9000 }))).toBe(2)
  })

  test('are as many as the queue would fill, counting those that start', () => {
    const next = (more: Partial<ScalingState>) => new ScalingRule(SETTINGS).next(overloaded(4, more))
    expect(next({ waiting: 2 })).toBe(6)
    expect(next({ waiting: 12, jobsPerWorker: 8 })).toBe(6)
    expect(next({ waiting: 2, wanted: 5, starting: 1 })).toBe(6)
    expect(next({ waiting: 1, wanted: 5, starting: 1 })).toBe(5)
  })

  test('at most double their number, at most once in an interval', () => {
    const rule = new ScalingRule(SETTINGS)
    expect(rule.next(overloaded(2))).toBe(4)
    expect(firstChange(rule, overloaded(4, { now: LOOK_MS }))).toEqual([5000, 8])
  })

  test('are at most maxWorkers, and those that end count', () => {
    const next = (more: Partial<ScalingState>) => new ScalingRule(SETTINGS).next(overloaded(4, more))
    expect(next({ maxWorkers: 5 })).toBe(5)
    expect(next({ maxWorkers: 5, leaving: 1 })).toBe(4)
    expect(next({ maxWorkers: 4, leaving: 3 })).toBe(4)
  })

  test('do not come while one fails to start, or none serves', () => {
    expect(firstChange(new ScalingRule(SETTINGS), overloaded(3, { ready: 2, slots: 2, failing: true }))).toBe(
      undefined,
    )
    const starting = overloaded(1, { ready: 0, starting: 1, slots: 0, busy: 0, waited: 60_000 })
    expect(firstChange(new ScalingRule(SETTINGS), starting)).toBe(undefined)
  })
})

describe('fewer workers', () => {
  test('remain when fewer were enough for the whole time: what was needed at most, and at least half', () => {
    expect(firstChange(new ScalingRule(SETTINGS), serving(8, { busy: 5 }))).toEqual([60_000, 5])
    expect(firstChange(new ScalingRule(SETTINGS), serving(8, { busy: 0 }))).toEqual([60_000, 4])
    expect(firstChange(new ScalingRule(SETTINGS), serving(7, { busy: 0 }))).toEqual([60_000, 4])
  })

  test('are not enough if all were needed once', () => {
    const rule = new ScalingRule(SETTINGS)
    expect(firstChange(rule, serving(2), 59_750)).toBe(undefined)
    expect(rule.next(serving(2, { busy: 2, now: 59_900 }))).toBe(2)
    expect(firstChange(rule, serving(2, { now: 60_000 }))).toEqual([120_000, 1])
  })

  test('are as many as the highest load of the time needed', () => {
    const rule = new ScalingRule(SETTINGS)
    rule.next(serving(8, { busy: 6 }))
    expect(firstChange(rule, serving(8, { busy: 1, now: LOOK_MS }))).toEqual([60_000, 6])
  })

  test('never remain below minWorkers, nor while a worker starts or a request waits for a slot', () => {
    expect(firstChange(new ScalingRule(SETTINGS), serving(3, { minWorkers: 2 }))).toEqual([60_000, 2])
    expect(firstChange(new ScalingRule(SETTINGS), serving(2, { minWorkers: 2 }))).toBe(undefined)
    expect(firstChange(new ScalingRule(SETTINGS), serving(3, { starting: 1, ready: 2 }))).toBe(undefined)
    const waits = overloaded(3, { ready: 2, slots: 2, busy: 2, failing: true })
    expect(firstChange(new ScalingRule(SETTINGS), waits)).toBe(undefined)
  })

  test('do not remain right after more came', () => {
    const rule = new ScalingRule(SETTINGS)
    rule.next(serving(4))
    expect(rule.next(overloaded(4, { now: 59_000 }))).toBe(8)
    expect(firstChange(rule, serving(8, { now: 59_250 }))).toEqual([119_250, 4])
  })
})

describe('no worker', () => {
  const asleep = { minWorkers: 0, wanted: 0, ready: 0, slots: 0 }

  test('remains after the time without a request, however many there were', () => {
    const slow = { ...SETTINGS, scaleDownAfter: 400_000 }
    const [at, next] = firstChange(new ScalingRule(slow), serving(3, { minWorkers: 0 }))!
    expect([at, next]).toEqual([300_000, 0])
  })

  test.each<[string, Partial<ScalingState>]>([
    ['minWorkers is above 0', { minWorkers: 1 }],
    ['a request is open, or a worker keeps a sequence', { idle: false }],
    ['the worker starts', { starting: 1, ready: 0 }],
    ['the worker fails', { failing: true, ready: 0 }],
  ])('does not remain while %s', (_why, more) => {
    const state = serving(1, { minWorkers: 0, ...more })
    expect(firstChange(new ScalingRule(SETTINGS), state)).toBe(undefined)
  })

  test('does not remain when a request came and went between two looks', () => {
    const rule = new ScalingRule(SETTINGS)
    expect(firstChange(rule, serving(1, { minWorkers: 0 }), 299_750)).toBe(undefined)
    expect(firstChange(rule, serving(1, { minWorkers: 0, now: 300_000, ended: 1 }))).toEqual([600_250, 0])
  })

  test('becomes one for a request, at once, whatever else', () => {
    const rule = new ScalingRule(SETTINGS)
    expect(rule.next({ ...QUIET, ...asleep })).toBe(0)
    expect(rule.next({ ...QUIET, ...asleep, waiting: 50, waited: 0, idle: false })).toBe(1)
  })

  test('waits until what ends has ended, if there is room for no other', () => {
    const wakes = { ...QUIET, ...asleep, waiting: 1, maxWorkers: 1 }
    expect(new ScalingRule(SETTINGS).next({ ...wakes, leaving: 1 })).toBe(0)
    expect(new ScalingRule(SETTINGS).next(wakes)).toBe(1)
  })
})

/** One look: how much time has passed, the load, and what became of workers that start. */
const look = fc.record({
  ms: fc.nat(3000),
  demand: fc.nat(20),
  queue: fc.nat(50),
  waited: fc.nat(2000),
  start: fc.constantFrom('later', 'ready', 'fails'),
  leaving: fc.nat(2),
})

test('any load: within the limits, at most double, at least half, and no addition on failure', () => {
  const bounds = fc.record({ min: fc.nat(3), room: fc.nat(8) })
  fc.assert(
    fc.property(bounds, fc.array(look, { maxLength: 300 }), ({ min, room }, looks) => {
      const max = min + Math.max(1, room)
      const settings = { ...SETTINGS, scaleDownAfter: 4000, scaleToZeroAfter: 8000, scaleUpInterval: 2000 }
      const rule = new ScalingRule(settings)
      let [now, wanted, ready, changedAt, addedAt] = [0, Math.max(1, min), Math.max(1, min), 0, -Infinity]
      let failing = false
      for (const { ms, demand, queue, waited, start, leaving } of looks) {
        now += ms
        if (start === 'ready') [ready, failing] = [wanted, false]
        failing ||= start === 'fails' && ready < wanted
        const busy = Math.min(demand, ready)
        const waiting = busy === ready ? queue : 0
        const starting = failing ? 0 : wanted - ready
        const idle = busy === 0 && waiting === 0
        const state: ScalingState = {
          ...{ now, minWorkers: min, maxWorkers: max, wanted, ready, starting, failing, leaving },
          ...{
            slots: ready,
            busy,
            jobsPerWorker: 1,
            waiting,
            waited: waiting > 0 ? waited : 0,
            idle,
            ended: 0,
          },
        }
        const next = rule.next(state)
        expect(next).toBeGreaterThanOrEqual(min)
        expect(next).toBeLessThanOrEqual(max)
        if (next > wanted && wanted > 0) {
          expect(failing).toBe(false)
          expect(ready).toBeGreaterThan(0)
          expect(next).toBeLessThanOrEqual(
            Math.min(wanted * 2, wanted + waiting, Math.max(wanted, max - leaving)),
          )
          expect(now - addedAt).toBeGreaterThanOrEqual(2000)
          addedAt = now
        }
        if (next < wanted) {
          expect(now - changedAt).toBeGreaterThanOrEqual(4000)
          expect(next).toBeGreaterThanOrEqual(busy)
          if (next > 0) expect(next).toBeGreaterThanOrEqual(Math.ceil(wanted / 2))
          else expect([min, idle, failing]).toEqual([0, true, false])
        }
        if (next !== wanted) changedAt = now
        wanted = next
        ready = Math.min(ready, wanted)
      }
    }),
  )
})

test('a constant load ends with a constant number of workers, which is enough', () => {
  fc.assert(
    fc.property(fc.nat(8), (demand) => {
      const rule = new ScalingRule(SETTINGS)
      const history: number[] = []
      let wanted = 1
      for (let now = 0; now < 1_000_000; now += LOOK_MS) {
        const busy = Math.min(demand, wanted)
        const waiting = demand - busy
        wanted = rule.next(
          serving(wanted, { now, busy, waiting, waited: waiting > 0 ? 600 : 0, idle: false }),
        )
        history.push(wanted)
      }
      expect(new Set(history.slice(-2000))).toEqual(new Set([Math.max(1, demand)]))
    }),
  )
})

import { randomUUID } from 'node:crypto'
import type { Asked, Dialect } from './dialect.ts'

/** Fields that the model must understand, as `count` does (docs/internals/promises.md). */
interface RunRequest {
  n: number
  delay?: number
  gated?: boolean
  size?: number
  fail?: number
  id?: string
  stream?: boolean
}

/** Models that all understand a {@link RunRequest}. */
export interface Models {
  readonly model: string
  /** Its limits are {@link LIMITS}. */
  readonly limited?: string
  /** Its workers are groups of ranks that all run the handler. */
  readonly ranked?: string
}

export interface Subject extends Models {
  readonly dialect: Dialect
  /** As an own request to the model: how many items a run has made. */
  items(id: string): Promise<number>
  /** As an own request to the model: asks a gated run for its next item. */
  next(id: string): Promise<unknown>
}

/** A point of the stream contract. It holds when `check` returns; otherwise the error says what is wrong. */
export interface Point {
  readonly name: string
  /** Default: streams. */
  readonly about?: 'all' | 'streams' | 'streams over HTTP' | 'whole answers'
  /** The model that has to be named for it. */
  readonly needs?: 'limited' | 'ranked'
  check(subject: Subject): Promise<void>
}

/** Milliseconds: to the first response, from one to the next, and in all. */
export const LIMITS = { first: 2500, gap: 750, total: 4000 }

const SETTLE_MS = 300
/** Milliseconds in which an unread run makes all items that it ever will, on a busy machine too. */
const STALL_MS = 10_000
/** Streams of others during which a run that is held back makes nothing. */
const REST_ROUNDS = 5
/**
 * Maximum bytes for a slow reader: what the sockets of both sides take (usually up to 10 MB), and the
 * windows.
 */
const MAX_AHEAD_BYTES = 16 * 1024 * 1024
const BIG = 64 * 1024
/** Milliseconds; a later item was not sent when it was made. */
const WAIT_MS = 10_000
/** Milliseconds; a limit that has not ended a run by then does not work. */
const LATE_MS = 5_000

export const POINTS: readonly Point[] = [
  {
    name: '1 an unknown model is refused with a status, not in the stream',
    about: 'all',
    check: async ({ dialect }) => {
      const { end } = await dialect.ask('no-such-model', JSON.stringify({ n: 1 }))
      expect(end.kind === 'refused', `it ended as ${JSON.stringify(end)}`)
      const { status } = end as { status: string }
      expect(status === dialect.notFound, `the status is ${status}, not ${dialect.notFound}`)
    },
  },
  {
    name: '1 a failure before the first item is a status',
    about: 'all',
    check: async (subject) => {
      const fine = await run(subject, { n: 1 })
      expect(fine.end.kind === 'finished', `a run without a failure ended as ${JSON.stringify(fine.end)}`)
      const { end } = await run(subject, { n: 5, fail: 0 })
      expect(end.kind === 'refused', `it ended as ${JSON.stringify(end)}`)
    },
  },
  {
    name: '2 every item arrives when it is made, as an item of its own',
    check: async (subject) => {
      const id = randomUUID()
      let seen = 0
      // The model makes item k + 1 only after item k has arrived, so a server that holds one back gets no
      // more.
      const onItem = (count: number): void => {
        seen = count
        void subject.next(id).catch(() => undefined)
      }
      const gated = { n: 8, gated: true, id }
      const { items, end } = await run(subject, gated, { onItem, leaveAfterMs: WAIT_MS })
      expect(end.kind !== 'left', `item ${seen + 1} had been made, and did not come within ${WAIT_MS} ms`)
      expect(end.kind === 'finished', `it ended as ${JSON.stringify(end)}`)
      expectNumbers(items, 8)
    },
  },
  {
    name: '3 a failure after the first item looks different from the end',
    check: async (subject) => {
      const { items, end } = await run(subject, { n: 9, fail: 3, delay: 20 })
      expect(items.length === 3, `${items.length} of the 3 items before the failure came`)
      expect(end.kind === 'failed', `it ended as ${JSON.stringify(end)}`)
    },
  },
  {
    name: '3 a failure after some items leaves nothing of a whole answer',
    about: 'whole answers',
    check: async (subject) => {
      const { end } = await run(subject, { n: 9, fail: 3, delay: 20 })
      expect(end.kind === 'refused', `it ended as ${JSON.stringify(end)}`)
    },
  },
  {
    name: '4 the handler stops when the client leaves',
    about: 'all',
    check: async (subject) => {
      const id = randomUUID()
      const leaving = subject.dialect.whole ? { leaveAfterMs: 500 } : { leaveAfter: 3, leaveAfterMs: WAIT_MS }
      const { end } = await run(subject, { n: 5_000, delay: 20, id }, leaving)
      expect(end.kind === 'left', `it ended as ${JSON.stringify(end)}`)
      const stopped = await itemsAtRest(subject, id, SETTLE_MS, 5_000)
      expect(stopped !== undefined, 'it still made items when its client had left 5 s before')
      expect(stopped! > 0, 'the run did not start')
    },
  },
  {
    name: '5 a client that does not read holds its own handler back',
    check: async (subject) => {
      const id = randomUUID()
      const enough = new AbortController()
      const stalled = run(subject, { n: 4000, delay: 0, size: BIG, id }, { stallUntil: enough.signal })
      const soon = await itemsAtRest(subject, id, 3 * SETTLE_MS, STALL_MS)
      let other = await run(subject, { n: 3, delay: 0 }, { leaveAfterMs: 5_000 })
      let later = await subject.items(id)
      // A busy machine may have held it up: it rests if it makes nothing while whole streams pass by.
      for (let rounds = 0; rounds < REST_ROUNDS && mayRest(other, later); rounds += 1) {
        other = await run(subject, { n: 3, delay: 0 }, { leaveAfterMs: 5_000 })
        const now = await subject.items(id)
        if (now !== later) rounds = 0
        later = now
      }
      enough.abort()
      await stalled
      expect(soon !== 0, 'the run did not start')
      expect(later * BIG <= MAX_AHEAD_BYTES, `${later} items of ${BIG} bytes were made unread`)
      expect(other.end.kind === 'finished', 'another stream of the model did not end meanwhile')
    },
  },
  {
    name: '5 eight streams of one model progress together',
    check: async (subject) => {
      const ids = Array.from({ length: 8 }, () => randomUUID())
      let begun = 0
      // No run continues before all have begun.
      const onItem = (count: number): void => {
        if (count === 1) begun += 1
        if (count === 1 && begun === ids.length)
          for (const id of ids) void subject.next(id).catch(() => undefined)
      }
      const each = (id: string): Promise<Asked> =>
        run(subject, { n: 2, gated: true, id }, { onItem, leaveAfterMs: WAIT_MS })
      const all = await Promise.all(ids.map(each))
      expect(begun === ids.length, `${begun} of 8 began while the others had not ended`)
      for (const { items } of all) expectNumbers(items, 2)
    },
  },
  {
    name: '6 the limit on the first response is its own',
    about: 'all',
    needs: 'limited',
    check: async (subject) => {
      const [asked, ms] = await timed(limited(subject, 'first', FIRST))
      expect(asked.end.kind === 'refused', `it ended as ${JSON.stringify(asked.end)}`)
      expectNotBefore(ms, LIMITS.first)
    },
  },
  {
    name: '6 the limit on a gap is its own',
    needs: 'limited',
    check: async (subject) => {
      let earlierEnded = false
      const earlier = limited(subject, 'first', FIRST).then(() => (earlierEnded = true))
      const [{ items, end }, ms] = await timed(limited(subject, 'gap', { n: 2, delay: 60_000 }))
      const tooLate = earlierEnded
      await earlier
      expect(items.length === 1 && end.kind === 'failed', `it ended as ${JSON.stringify(end)}`)
      expectNotBefore(ms, LIMITS.gap)
      expect(
        !tooLate,
        'it ended after a run that had begun before it and had the limit on the first response',
      )
    },
  },
  {
    name: '6 the limit on the whole request is its own',
    needs: 'limited',
    check: async (subject) => {
      const [asked, ms] = await timed(limited(subject, 'total', { n: 100, delay: 300 }))
      expect(asked.end.kind === 'failed', `it ended as ${JSON.stringify(asked.end)}`)
      expectNotBefore(ms, LIMITS.total)
    },
  },
  {
    name: '7 never compressed, Cache-Control no-cache, X-Accel-Buffering no',
    about: 'streams over HTTP',
    check: async (subject) => {
      const { headers = {} } = await run(subject, { n: 3, delay: 10 })
      expect(
        headers['content-encoding'] === undefined,
        `it is compressed (${headers['content-encoding'] ?? ''})`,
      )
      const cache = headers['cache-control'] ?? 'missing'
      expect(cache.includes('no-cache'), `Cache-Control is ${cache}`)
      const buffering = headers['x-accel-buffering'] ?? 'missing'
      expect(buffering === 'no', `X-Accel-Buffering is ${buffering}`)
    },
  },
  {
    name: '8 of a group of ranks one sends',
    needs: 'ranked',
    check: async (subject) => {
      const { items, end } = await run({ ...subject, model: subject.ranked! }, { n: 8, delay: 20 })
      expect(end.kind === 'finished', `it ended as ${JSON.stringify(end)}`)
      expectNumbers(items, 8)
    },
  },
]

function run(
  { dialect, model }: Subject,
  request: RunRequest,
  options?: Parameters<Dialect['ask']>[2],
): Promise<Asked> {
  return dialect.ask(model, JSON.stringify(request), options)
}

function mayRest(other: Asked, items: number): boolean {
  return other.end.kind === 'finished' && items * BIG <= MAX_AHEAD_BYTES
}

/** The number of items of a run once two reads, `pauseMs` apart, agree; undefined: they never did. */
async function itemsAtRest(
  subject: Subject,
  id: string,
  pauseMs: number,
  limitMs: number,
): Promise<number | undefined> {
  const end = performance.now() + limitMs
  for (let items = 0; performance.now() < end;) {
    await sleep(pauseMs)
    const now = await subject.items(id)
    if (now > 0 && now === items) return now
    items = now
  }
  return undefined
}

/** A run that exceeds the limit on the first response. */
const FIRST: RunRequest = { n: 60, delay: 1_000, stream: false }

function limited(subject: Subject, limit: keyof typeof LIMITS, request: RunRequest): Promise<Asked> {
  const leaveAfterMs = LIMITS[limit] + LATE_MS
  return run({ ...subject, model: subject.limited! }, request, { leaveAfterMs })
}

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const began = performance.now()
  const value = await work
  return [value, performance.now() - began]
}

function expectNotBefore(ms: number, limit: number): void {
  expect(ms >= limit * 0.9, `it took ${Math.round(ms)} ms, the limit is ${limit} ms`)
}

function expectNumbers(items: Asked['items'], n: number): void {
  const wanted = Array.from({ length: n }, (_, k) => String(k + 1)).join()
  const texts = items.map(({ text }) => JSON.stringify(text)).join()
  expect(items.map(({ text }) => String(Number(text))).join() === wanted, `the items are ${texts}`)
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

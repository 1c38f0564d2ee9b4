import { randomUUID } from 'node:crypto'
import type { Asked, Dialect } from './dialect.ts'

/** What the model `count` understands; another server needs a model that does (docs/protocols.md). */
interface RunRequest {
  n: number
  delay?: number
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
}

/** A point of the stream contract. It holds when `check` returns; what it throws says how it does not. */
export interface Point {
  readonly name: string
  /** Default: streams. */
  readonly about?: 'all' | 'streams' | 'streams over HTTP' | 'whole answers'
  /** It holds if it does so once in as many tries: it measures a time, and the machine may have been busy. Default 1. */
  readonly tries?: number
  /** The model that has to be named for it. */
  readonly needs?: 'limited' | 'ranked'
  check(subject: Subject): Promise<void>
}

/** Milliseconds: to the first response, from one to the next, and in all. */
export const LIMITS = { first: 1500, gap: 750, total: 4000 }

const DELAY_MS = 60
const SETTLE_MS = 300
/** In which a run that nobody reads makes all that it ever will, on a busy machine too. */
const STALL_MS = 10_000
/** A slow reader may cost no more than this: what the sockets of both sides take (usually up to 10 MB), and the windows above them. */
const MAX_AHEAD_BYTES = 16 * 1024 * 1024
const BIG = 64 * 1024
/** What a machine that others use too may be late. */
const LATE_MS = 700

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
    tries: 3,
    check: async (subject) => {
      const { items, end } = await run(subject, { n: 8, delay: DELAY_MS })
      expect(end.kind === 'finished', `it ended as ${JSON.stringify(end)}`)
      expectNumbers(items, 8)
      const spread = items.at(-1)!.at - items[0]!.at
      expect(spread >= 7 * DELAY_MS * 0.6, `all came within ${Math.round(spread)} ms of ${7 * DELAY_MS} ms`)
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
    tries: 3,
    check: async (subject) => {
      const id = randomUUID()
      const leaving = subject.dialect.whole ? { leaveAfterMs: 500 } : { leaveAfter: 3, leaveAfterMs: 5_000 }
      const { end } = await run(subject, { n: 500, delay: 20, id }, leaving)
      expect(end.kind === 'left', `it ended as ${JSON.stringify(end)}`)
      await sleep(SETTLE_MS)
      const soon = await subject.items(id)
      await sleep(SETTLE_MS)
      const later = await subject.items(id)
      expect(soon >= 3, `the run made ${soon} items, says the model`)
      expect(later === soon, `it went on from ${soon} to ${later} items`)
    },
  },
  {
    name: '5 a client that does not read holds its own handler back',
    check: async (subject) => {
      const id = randomUUID()
      const enough = new AbortController()
      const stalled = run(subject, { n: 4000, delay: 0, size: BIG, id }, { stallUntil: enough.signal })
      const soon = await itemsAtRest(subject, id)
      const other = await run(subject, { n: 3, delay: 0 }, { leaveAfterMs: 5_000 })
      const later = await subject.items(id)
      enough.abort()
      await stalled
      expect(soon > 0, 'the run did not start')
      expect(later * BIG <= MAX_AHEAD_BYTES, `${later} items of ${BIG} bytes were made unread`)
      expect(other.end.kind === 'finished', 'another stream of the model did not end meanwhile')
    },
  },
  {
    name: '5 eight streams of one model progress together',
    tries: 3,
    check: async (subject) => {
      const all = await Promise.all(Array.from({ length: 8 }, () => run(subject, { n: 8, delay: DELAY_MS })))
      expect(
        all.every(({ items }) => items.length === 8),
        `items: ${all.map(({ items }) => items.length).join()}`,
      )
      const lastFirst = Math.max(...all.map(({ items }) => items[0]!.at))
      const firstLast = Math.min(...all.map(({ items }) => items.at(-1)!.at))
      expect(lastFirst < firstLast, 'one had ended before another began')
    },
  },
  {
    name: '6 the limit on the first response is its own',
    about: 'all',
    needs: 'limited',
    tries: 2,
    check: async (subject) => {
      const [asked, ms] = await timed(limited(subject, 'first', { n: 60, delay: 1_000, stream: false }))
      expect(asked.end.kind === 'refused', `it ended as ${JSON.stringify(asked.end)}`)
      expectAbout(ms, LIMITS.first)
    },
  },
  {
    name: '6 the limit on a gap is its own',
    needs: 'limited',
    tries: 2,
    check: async (subject) => {
      const [{ items, end }, ms] = await timed(limited(subject, 'gap', { n: 2, delay: 60_000 }))
      expect(items.length === 1 && end.kind === 'failed', `it ended as ${JSON.stringify(end)}`)
      expectAbout(ms, LIMITS.gap)
    },
  },
  {
    name: '6 the limit on the whole request is its own',
    needs: 'limited',
    tries: 2,
    check: async (subject) => {
      const [asked, ms] = await timed(limited(subject, 'total', { n: 100, delay: 300 }))
      expect(asked.end.kind === 'failed', `it ended as ${JSON.stringify(asked.end)}`)
      expectAbout(ms, LIMITS.total)
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

/** How many items a run has made once it makes no more, or more than it may. */
async function itemsAtRest(subject: Subject, id: string): Promise<number> {
  const end = performance.now() + STALL_MS
  for (let items = 0; ;) {
    await sleep(3 * SETTLE_MS)
    const now = await subject.items(id)
    if ((now > 0 && now === items) || now * BIG > MAX_AHEAD_BYTES || performance.now() > end) return now
    items = now
  }
}

function limited(subject: Subject, limit: keyof typeof LIMITS, request: RunRequest): Promise<Asked> {
  const leaveAfterMs = LIMITS[limit] + LATE_MS + 100
  return run({ ...subject, model: subject.limited! }, request, { leaveAfterMs })
}

async function timed<T>(work: Promise<T>): Promise<[T, number]> {
  const began = performance.now()
  const value = await work
  return [value, performance.now() - began]
}

function expectAbout(ms: number, limit: number): void {
  const fits = ms >= limit * 0.9 && ms <= limit + LATE_MS
  expect(fits, `it took ${Math.round(ms)} ms, the limit is ${limit} ms`)
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

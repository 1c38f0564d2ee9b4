import { randomUUID } from 'node:crypto'
import type { Dialect, Streamed } from './dialect.ts'

/** What the model `count` understands; another server needs a model that does (docs/protocols.md). */
interface RunRequest {
  n: number
  delay?: number
  size?: number
  fail?: number
  id?: string
}

export interface Subject {
  readonly dialect: Dialect
  readonly model: string
  /** As an own request to the model: how many items a run has made. */
  items(id: string): Promise<number>
}

/** A point of the stream contract. It holds when `check` returns; what it throws says how it does not. */
export interface Point {
  readonly name: string
  readonly httpOnly?: boolean
  check(subject: Subject): Promise<void>
}

const DELAY_MS = 60
const SETTLE_MS = 300
/** A slow reader may cost the server no more than this. */
const MAX_AHEAD_BYTES = 48 * 1024 * 1024
const BIG = 64 * 1024

export const POINTS: readonly Point[] = [
  {
    name: '1 an unknown model is refused with a status, not in the stream',
    check: async ({ dialect }) => {
      const { end } = await dialect.stream('no-such-model', text({ n: 1 }))
      expect(end.kind === 'refused', `it ended as ${JSON.stringify(end)}`)
      const { status } = end as { status: string }
      expect(status === dialect.notFound, `the status is ${status}, not ${dialect.notFound}`)
    },
  },
  {
    name: '1 a failure before the first item is a status',
    check: async (subject) => {
      const fine = await stream(subject, { n: 1 })
      expect(fine.end.kind === 'finished', `a run without a failure ended as ${JSON.stringify(fine.end)}`)
      const { end } = await stream(subject, { n: 5, fail: 0 })
      expect(end.kind === 'refused', `it ended as ${JSON.stringify(end)}`)
    },
  },
  {
    name: '2 every item arrives when it is made, as an item of its own',
    check: async (subject) => {
      const { items, end } = await stream(subject, { n: 8, delay: DELAY_MS })
      expect(end.kind === 'finished', `it ended as ${JSON.stringify(end)}`)
      const numbers = items.map((item) => Number(item.text))
      expect(
        numbers.join() === '1,2,3,4,5,6,7,8',
        `the items are ${items.map((item) => JSON.stringify(item.text)).join()}`,
      )
      const spread = items.at(-1)!.at - items[0]!.at
      expect(spread >= 7 * DELAY_MS * 0.6, `all came within ${Math.round(spread)} ms of ${7 * DELAY_MS} ms`)
    },
  },
  {
    name: '3 a failure after the first item looks different from the end',
    check: async (subject) => {
      const { items, end } = await stream(subject, { n: 9, fail: 3, delay: 20 })
      expect(items.length === 3, `${items.length} of the 3 items before the failure came`)
      expect(end.kind === 'failed', `it ended as ${JSON.stringify(end)}`)
    },
  },
  {
    name: '4 the handler stops when the client leaves',
    check: async (subject) => {
      const id = randomUUID()
      const { end } = await stream(subject, { n: 500, delay: 20, id }, { leaveAfter: 3 })
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
      const stalled = stream(subject, { n: 4000, delay: 0, size: BIG, id }, { stallMs: 3_000 })
      await sleep(2_000)
      const soon = await subject.items(id)
      const other = await stream(subject, { n: 3, delay: 0 })
      const later = await subject.items(id)
      await stalled
      expect(soon > 0, 'the run did not start')
      expect(later * BIG <= MAX_AHEAD_BYTES, `${later} items of ${BIG} bytes were made unread`)
      expect(other.end.kind === 'finished', 'another stream of the model did not end meanwhile')
    },
  },
  {
    name: '5 eight streams of one model progress together',
    check: async (subject) => {
      const all = await Promise.all(
        Array.from({ length: 8 }, () => stream(subject, { n: 8, delay: DELAY_MS })),
      )
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
    name: '7 never compressed, Cache-Control no-cache, X-Accel-Buffering no',
    httpOnly: true,
    check: async (subject) => {
      const { headers = {} } = await stream(subject, { n: 3, delay: 10 })
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
]

function stream(
  { dialect, model }: Subject,
  run: RunRequest,
  options?: Parameters<Dialect['stream']>[2],
): Promise<Streamed> {
  return dialect.stream(model, text(run), options)
}

function text(run: RunRequest): string {
  return JSON.stringify(run)
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise)
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

import { existsSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { aborted } from '../aborted.ts'
import { opened } from '../gate.ts'
import { sendHalfAFrame } from './half-frame.ts'

/**
 * The plan of a run: a JSON object anywhere in the text of the request, so that it survives every dialect's
 * mapping.
 */
export interface Plan {
  /** The name under which the run reports its progress. */
  id: string
  /** Default 3. */
  n?: number
  /** Milliseconds before the first item, default 0. */
  first?: number
  /** Milliseconds before each further item, default 0. */
  gap?: number
  /** Item k + 1 waits until there is a file of this path and `.k`. */
  gates?: string
  /** Computes before each item until that file exists, which keeps its process busy. */
  busy?: boolean
  /** With `busy`: so many items come together, and it computes only before the first of them. Default 1. */
  burst?: number
  /** Characters of an item, at least. */
  pad?: number
  /** The run fails after so many items. */
  fail?: number
  /** The process ends with status 0 after so many items. */
  exit?: number
  /** The process ends after so many items, in the middle of a frame. */
  half?: number
  /** The process runs out of its JavaScript heap after so many items. */
  eat?: number
  /** Items contain the id and no white space: `<id#number>`, and as many `x` as `pad` wants. */
  stamped?: boolean
  /** The items are the UTF-16 code units of this text; `n` has no effect. */
  units?: string
  /** Default true; false: one answer at the end. */
  stream?: boolean
}

export function planIn(text: string): Plan {
  return JSON.parse(/\{.*\}/s.exec(text)![0]) as Plan
}

/** Milliseconds; if no item is taken for longer, the run waits for its client. */
const STALLED_MS = 300
/** Milliseconds that a busy run computes before an item, at least and at most. */
const BUSY_MS = 2
/** The same before items that come together: the worker lets them leave at once after such a pause. */
const BURST_MS = 20
const BUSY_LIMIT_MS = 5_000

/**
 * The items of a run, each a number and a newline. Its log has an entry when it began, sent the first item,
 * waited for its client, and saw its signal abort.
 */
export async function* pace(plan: Plan, signal: AbortSignal): AsyncGenerator<string> {
  const {
    id,
    units,
    n = units?.length ?? 3,
    first = 0,
    gap = 0,
    gates,
    busy,
    fail,
    exit,
    half,
    eat,
    burst = 1,
  } = plan
  void aborted(signal).then(() => say('aborted', id))
  say('began', id)
  for (let k = 1; k <= n; k += 1) {
    const gate = k > 1 && gates !== undefined ? `${gates}.${k - 1}` : undefined
    if (busy === true) {
      if ((k - 1) % burst === 0) computeUntil(gate, burst === 1 ? BUSY_MS : BURST_MS)
    } else if (gate === undefined)
      await delay(k === 1 ? first : gap, undefined, { signal }).catch(() => undefined)
    else await opened(gate, signal)
    if (signal.aborted) return
    if (fail === k - 1) throw new Error('on purpose')
    if (exit === k - 1) process.exit(0)
    if (half === k - 1) await sendHalfAFrame()
    if (eat === k - 1) eatHeap()
    const timer = setTimeout(say, STALLED_MS, 'stalled', id)
    yield itemOf(plan, k)
    clearTimeout(timer)
    if (k === 1) say('sent', id)
  }
}

function itemOf({ id, units, stamped, pad = 0 }: Plan, k: number): string {
  if (units !== undefined) return units[k - 1]!
  return stamped === true ? `${`<${id}#${k}>`.padEnd(pad, 'x')}\n` : `${String(k).padStart(pad)}\n`
}

/** At most this many arrays of 8 MB, so that a process with a large heap fails instead of the machine. */
const MOST_EATEN = 100

function eatHeap(): never {
  const kept: number[][] = []
  while (kept.length < MOST_EATEN) kept.push(new Array<number>(1_000_000).fill(1.5))
  throw new Error('the heap has room for more')
}

/** At most some seconds, because a busy process cannot be told to stop. */
function computeUntil(path: string | undefined, leastMs: number): void {
  const began = performance.now()
  while (performance.now() < began + leastMs);
  while (path !== undefined && !existsSync(path))
    if (performance.now() > began + BUSY_LIMIT_MS) throw new Error('the item before did not come')
}

/** One line of the log; milliseconds since the epoch, with fractions. */
function say(word: string, id: string): void {
  console.log(`paced ${word} ${id} ${performance.timeOrigin + performance.now()}`)
}

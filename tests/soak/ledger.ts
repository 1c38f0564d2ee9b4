import type { Asked } from '../contract/dialect.ts'

/** What a client asked for. */
export interface Order {
  /** Unique; every item carries it. */
  readonly id: string
  /** Items of the whole stream. */
  readonly n: number
  /** The handler throws, or ends its process, after so many items. */
  readonly breaksAfter?: number
}

/** What must never be seen. */
export type Problem =
  | 'lost'
  | 'doubled'
  | 'mixed'
  | 'cut but reported as a success'
  | 'failed without a fault'
  | 'a wrong answer'
  | 'no end in time'
  | 'let in without a right'

export interface Finding {
  readonly problem: Problem
  readonly what: string
}

/** One row of the report. */
export interface Tally {
  asked: number
  items: number
  finished: number
  failed: number
  refused: number
  left: number
}

const STAMP = /<([^<>#]*)#(\d+)>x*/y
/** Findings that are kept in words; the others are counted. */
const MAX_FINDINGS = 50
/** How clients say it; the server has words of its own. */
const LATE = /nothing for|Deadline exceeded after|no end in/

/** Compares what clients asked for with what they got. */
export class Ledger {
  readonly tallies = new Map<string, Tally>()
  readonly findings: Finding[] = []
  readonly counts = new Map<Problem, number>()
  /** What clients were told when a fault cut their stream, with how often. */
  readonly reasons = new Map<string, number>()

  readonly #onFinding: ((line: string) => void) | undefined

  constructor(onFinding?: (line: string) => void) {
    this.#onFinding = onFinding
  }

  /** @param isExcused a fault was under way, so the stream may have been cut (as an error) */
  stream(name: string, order: Order, asked: Asked, isExcused: boolean): void {
    const items = asked.items.map(({ text }) => text)
    this.#count(name, asked.end.kind, items.length)
    const problem = itemProblem(order, items, asked.end.kind) ?? this.#endProblem(order, asked, isExcused)
    if (problem === undefined) return
    const got = items.join('').replace(/x{2,}/g, 'x…').slice(0, 300)
    this.#find(problem, `${name} ${JSON.stringify(order)}: ${JSON.stringify(asked.end)} after ${got}`)
  }

  /** An answer that is right or wrong as a whole. @param problem undefined: right */
  answer(name: string, end: Asked['end']['kind'], problem?: Problem, what = ''): void {
    this.#count(name, end, end === 'finished' ? 1 : 0)
    if (problem !== undefined) this.#find(problem, `${name} ${what}`)
  }

  get asked(): number {
    return [...this.tallies.values()].reduce((sum, { asked }) => sum + asked, 0)
  }

  #endProblem({ breaksAfter }: Order, { end }: Asked, isExcused: boolean): Problem | undefined {
    if (end.kind === 'finished' && breaksAfter !== undefined) return 'cut but reported as a success'
    if (end.kind !== 'failed' && end.kind !== 'refused') return undefined
    const reason = end.message
      .replace(/[0-9a-f-]{8,}|\d+/g, 'N')
      .replace(/\s+/g, ' ')
      .slice(0, 100)
    this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1)
    if (LATE.test(end.message)) return 'no end in time'
    return isExcused || breaksAfter !== undefined ? undefined : 'failed without a fault'
  }

  #count(name: string, end: Asked['end']['kind'], items: number): void {
    const tally = this.tallies.get(name) ?? {
      asked: 0,
      items: 0,
      finished: 0,
      failed: 0,
      refused: 0,
      left: 0,
    }
    this.tallies.set(name, tally)
    tally.asked += 1
    tally.items += items
    tally[end] += 1
  }

  #find(problem: Problem, what: string): void {
    this.counts.set(problem, (this.counts.get(problem) ?? 0) + 1)
    if (this.findings.length >= MAX_FINDINGS) return
    this.findings.push({ problem, what })
    this.#onFinding?.(`${problem}: ${what}`)
  }
}

/**
 * What is wrong with the items. White space does not count, because a dialect of texts may move it from one
 * item to its neighbour.
 */
function itemProblem(
  { id, n }: Order,
  items: readonly string[],
  end: Asked['end']['kind'],
): Problem | undefined {
  const text = items.join('').replace(/\s/g, '')
  let expected = 1
  let at = 0
  while (at < text.length) {
    STAMP.lastIndex = at
    const found = STAMP.exec(text)
    if (found === null || found[1] !== id) return 'mixed'
    const number = Number(found[2])
    if (number < expected) return 'doubled'
    if (number > expected) return 'lost'
    expected += 1
    at = STAMP.lastIndex
  }
  if (expected - 1 > n) return 'mixed'
  return end === 'finished' && expected - 1 < n ? 'lost' : undefined
}

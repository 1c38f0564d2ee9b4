import type { Problem } from './ledger.ts'
import { SOAK_DIALECTS, rowOf } from './clients/dialects.ts'
import type { SoakResult } from './soak.ts'
import type { Check } from './vitals.ts'

const PROBLEMS: readonly Problem[] = [
  'lost',
  'doubled',
  'mixed',
  'cut but reported as a success',
  'failed without a fault',
  'a wrong answer',
  'no end in time',
  'let in without a right',
]
const COLUMNS = ['asked', 'items', 'finished', 'failed', 'refused', 'left'] as const

/** Prints the result; returns how many checks failed. */
export function report({ ledger, faults, operator, callers, checks, seconds }: SoakResult): number {
  const width = Math.max(...[...ledger.tallies.keys()].map((name) => name.length))
  console.log(`\n${''.padEnd(width)} ${COLUMNS.map((name) => name.padStart(9)).join('')}`)
  const sums = COLUMNS.map(() => 0)
  for (const [name, tally] of [...ledger.tallies].sort(([a], [b]) => a.localeCompare(b))) {
    COLUMNS.forEach((column, i) => (sums[i]! += tally[column]))
    console.log(
      `${name.padEnd(width)} ${COLUMNS.map((column) => String(tally[column]).padStart(9)).join('')}`,
    )
  }
  console.log(`${'all'.padEnd(width)} ${sums.map((sum) => String(sum).padStart(9)).join('')}`)
  const done = (counts: Map<string, number>): string =>
    [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ')
  console.log(`\nin ${seconds} s: ${done(faults.counts)}; operator: ${done(operator.counts)}`)
  console.log(`keys replaced: ${callers.rotations}, known after ${Math.round(callers.slowestMs)} ms at most`)
  console.log('what clients were told:')
  for (const [reason, count] of [...ledger.reasons].sort(([, a], [, b]) => b - a).slice(0, 15))
    console.log(`${String(count).padStart(7)} ${reason}`)
  console.log('')
  const rows = new Set(SOAK_DIALECTS.flatMap((dialect) => dialect.models.map((kind) => rowOf(dialect, kind))))
  const unasked = [...rows].filter((row) => !ledger.tallies.has(row))
  return tell([
    {
      name: 'every dialect was asked',
      isPassed: unasked.length === 0,
      detail: `${rows.size} rows, without: ${unasked.join(', ') || 'none'}`,
    },
    ...PROBLEMS.map((problem) => {
      const count = ledger.counts.get(problem) ?? 0
      return { name: `none ${problem}`, isPassed: count === 0, detail: String(count) }
    }),
    ...checks,
  ])
}

/** Prints a line for each check, and the last line; returns how many failed. */
export function tell(all: readonly Check[]): number {
  for (const { name, isPassed, detail } of all)
    console.log(`${isPassed ? 'ok' : 'FAILED'} ${name}: ${detail}`)
  const failed = all.filter(({ isPassed }) => !isPassed).length
  console.log(`${all.length - failed} passed, ${failed} failed`)
  return failed
}

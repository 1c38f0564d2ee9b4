import type { Problem } from './ledger.ts'
import type { SoakResult } from './soak.ts'

const PROBLEMS: readonly Problem[] = [
  'lost',
  'doubled',
  'mixed',
  'cut but reported as a success',
  'failed without a fault',
  'a wrong answer',
  'no end in time',
]
const COLUMNS = ['asked', 'items', 'finished', 'failed', 'refused', 'left'] as const

/** Prints the result; returns how many checks failed. */
export function report({ ledger, faults, checks, seconds }: SoakResult): number {
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
  console.log(
    `\nfaults in ${seconds} s: ${[...faults.counts].map(([kind, count]) => `${count} ${kind}`).join(', ')}`,
  )
  console.log('what clients were told:')
  for (const [reason, count] of [...ledger.reasons].sort(([, a], [, b]) => b - a).slice(0, 15))
    console.log(`${String(count).padStart(7)} ${reason}`)
  console.log('')
  const all = [
    {
      name: 'every dialect was asked',
      isPassed: ledger.tallies.size > 15,
      detail: `${ledger.tallies.size} rows`,
    },
    ...PROBLEMS.map((problem) => {
      const count = ledger.counts.get(problem) ?? 0
      return { name: `none ${problem}`, isPassed: count === 0, detail: String(count) }
    }),
    ...checks,
  ]
  for (const { name, isPassed, detail } of all)
    console.log(`${isPassed ? 'ok' : 'FAILED'} ${name}: ${detail}`)
  const failed = all.filter(({ isPassed }) => !isPassed).length
  console.log(`${all.length - failed} passed, ${failed} failed`)
  return failed
}

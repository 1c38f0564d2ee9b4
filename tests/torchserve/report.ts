import { writeFile } from 'node:fs/promises'
import type { Outcome, Result } from './result.ts'

const OUTCOMES: readonly Outcome[] = ['passed', 'failed', 'impossible']
const REASON_LENGTH = 300

/** A table with a row for each suite, then what did not simply pass. */
export function formatReport(results: readonly Result[]): string {
  const suites = [...new Set(results.map(({ suite }) => suite))]
  const rows = [
    ...suites.map((suite) =>
      row(
        suite,
        results.filter((r) => r.suite === suite),
      ),
    ),
    row('all', results),
  ]
  const table = ['| Collection or test file | Passed | Failed | Impossible |', '|---|---|---|---|', ...rows]
  const others = results.filter(({ reason }) => reason !== undefined).map(line)
  return [...table, ...(others.length === 0 ? [] : ['', ...others])].join('\n')
}

function row(suite: string, results: readonly Result[]): string {
  const counts = OUTCOMES.map((outcome) => results.filter((result) => result.outcome === outcome).length)
  return `| ${[suite, ...counts].join(' | ')} |`
}

function line({ suite, test, outcome, reason = '' }: Result): string {
  const shown = reason.replace(/\s+/g, ' ').trim()
  return `${outcome}: ${suite} / ${test}: ${shown.length > REASON_LENGTH ? `${shown.slice(0, REASON_LENGTH)} ...` : shown}`
}

export async function writeReport(results: readonly Result[], path: string): Promise<void> {
  await writeFile(path, `${JSON.stringify(results, undefined, 2)}\n`)
}

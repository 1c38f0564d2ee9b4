/**
 * Whether the tests notice when the product is wrong: `npm run test:mutants [-- --only NAME... | --part K/N
 * | --list]`. Each mutant of list/ is put into a copy of the working tree, where the tests that are named
 * with it must be green without it and red with it. Ends with `N passed, N failed`.
 */
import { parseArgs } from 'node:util'
import { runJest, type JestResult } from './jest-run.ts'
import type { Mutant } from './mutant.ts'
import { readList } from './read-list.ts'
import { unfitting, WorkingCopy } from './working-copy.ts'

/** For one mutant. */
const LIMIT_MS = 60_000

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    /** Every N-th mutant, from the K-th on: for runs with little time. */
    part: { type: 'string' },
    list: { type: 'boolean', default: false },
  },
})

/** What the tests of a mutant say of the product as it is; mutants with the same tests share it. */
const healthy = new Map<string, Promise<JestResult>>()

/** Why the mutant's tests prove nothing, or undefined. */
async function fault(copy: WorkingCopy, { tests, title }: Mutant): Promise<string | undefined> {
  const key = JSON.stringify([tests, title])
  const running = healthy.get(key) ?? runJest(copy.folder, tests, title, LIMIT_MS)
  healthy.set(key, running)
  const { error, failed, passed } = await running
  if (error !== undefined) return `without the mutant: ${error}`
  if (failed.length > 0) return `red without the mutant: ${failed.join('; ')}`
  return passed === 0 ? 'no test has such a title' : undefined
}

/** Whether it was noticed. */
async function dies(copy: WorkingCopy, mutant: Mutant): Promise<boolean> {
  const before = await fault(copy, mutant)
  if (before !== undefined) {
    console.log(`ERROR     ${mutant.name}: ${before}`)
    return false
  }
  const run = (): Promise<JestResult> => runJest(copy.folder, mutant.tests, mutant.title, LIMIT_MS)
  const { error, failed, seconds } = await copy.with(mutant, run)
  const time = `${seconds.toFixed(1)} s`
  if (failed.length > 0)
    console.log(`killed    ${mutant.name} (${time})\n          by ${failed.join('\n             ')}`)
  else if (error === undefined) console.log(`SURVIVED  ${mutant.name} (${time}): ${mutant.file}`)
  else console.log(`ERROR     ${mutant.name} (${time}): ${error}`)
  return failed.length > 0
}

/** @throws Error when the part is not such as `2/6` */
function partOf(mutants: Mutant[], part = '1/1'): Mutant[] {
  const [k = 0, n = 0] = part.split('/').map(Number)
  if (!(k >= 1 && k <= n)) throw new Error(`--part must be K/N with K from 1 to N, found ${part}`)
  return mutants.filter((_mutant, index) => index % n === k - 1)
}

async function main(): Promise<{ passed: number; failed: number }> {
  const all = await readList()
  const named = all.filter(({ name }) => values.only.length === 0 || values.only.includes(name))
  const wanted = partOf(named, values.part)
  const unknown = values.only.filter((name) => !all.some((mutant) => mutant.name === name))
  const errors = [
    ...unknown.map((name) => `There is no mutant "${name}"; see --list`),
    ...(await unfitting(all)),
  ]
  for (const error of errors) console.log(`ERROR     ${error}`)
  if (values.list) {
    for (const { name, file, tests } of wanted) console.log(`${name}\n    ${file} -> ${tests.join(', ')}`)
    return { passed: wanted.length - errors.length, failed: errors.length }
  }
  if (errors.length > 0) return { passed: 0, failed: errors.length }
  let passed = 0
  const copy = await WorkingCopy.make()
  try {
    for (const mutant of wanted) if (await dies(copy, mutant)) passed += 1
  } finally {
    await copy.remove()
  }
  return { passed, failed: wanted.length - passed }
}

const { passed, failed } = await main()
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1

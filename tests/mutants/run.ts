/**
 * Whether the tests notice when the product is wrong: `npm run test:mutants -- --help`. Each mutant of list/
 * is put into a copy of the working tree, where the tests that are named with it must be green without it and
 * red with it. Ends with `N passed, N failed`.
 */
import { parseArgs } from 'node:util'
import { runJest, type JestResult, type RunLimits } from './jest-run.ts'
import type { Mutant } from './mutant.ts'
import { readList } from './read-list.ts'
import { unfitting, WorkingCopy } from './working-copy.ts'

/** For the tests of one mutant, and for each test: who waits for what it withholds waits no longer. */
const LIMITS: Required<RunLimits> = { run: 60_000, test: 15_000 }
/** On a busy machine they have this many times as long as without the mutant, if that is longer. */
const PATIENCE = 3
/** For the tests without the mutant, where no wait is in vain. */
const HEALTHY_LIMITS: RunLimits = { run: 600_000 }

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', multiple: true, default: [] },
    part: { type: 'string' },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
})

function usage(count: number): string {
  return `Usage: npm run test:mutants -- [options]

Puts each mutant of tests/mutants/list into a copy of the working tree and runs the tests that are named with
it: they must pass without the mutant and fail with it.

  --only NAME...  only these mutants, by their whole names
  --part K/N      every N-th mutant, from the K-th on
  --list          the mutants with their files and tests; runs nothing
  -h, --help      this text

One mutant takes 5 to 60 s, all ${count} an hour.`
}

/** Names that follow the first one. */
const only = [...values.only, ...positionals]

/** What the tests of a mutant say of the product as it is; mutants with the same tests share it. */
const healthy = new Map<string, Promise<JestResult>>()

function withoutMutant(copy: WorkingCopy, { tests, title }: Mutant): Promise<JestResult> {
  const key = JSON.stringify([tests, title])
  const running = healthy.get(key) ?? runJest(copy.folder, tests, title, HEALTHY_LIMITS)
  healthy.set(key, running)
  return running
}

/** Why the mutant's tests prove nothing, or undefined. */
function faultOf({ error, failed, passed }: JestResult): string | undefined {
  if (error !== undefined) return `without the mutant: ${error}`
  if (failed.length > 0) return `red without the mutant: ${failed.join('; ')}`
  return passed === 0 ? 'no test has such a title' : undefined
}

/** Whether it was noticed. */
async function dies(copy: WorkingCopy, mutant: Mutant): Promise<boolean> {
  const before = await withoutMutant(copy, mutant)
  const fault = faultOf(before)
  if (fault !== undefined) {
    console.log(`ERROR     ${mutant.name}: ${fault}`)
    return false
  }
  const limits = {
    run: Math.max(LIMITS.run, Math.ceil(PATIENCE * before.seconds * 1000)),
    test: Math.max(LIMITS.test, Math.ceil(PATIENCE * before.slowestSeconds * 1000)),
  }
  const run = (): Promise<JestResult> => runJest(copy.folder, mutant.tests, mutant.title, limits)
  const { error, failed, seconds } = await copy.with(mutant, run)
  // A test that has failed has noticed, whatever the others still wait for.
  const time = `${seconds.toFixed(1)} s${error !== undefined && failed.length > 0 ? `, ${error}` : ''}`
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
  const named = all.filter(({ name }) => only.length === 0 || only.includes(name))
  const wanted = partOf(named, values.part)
  const unknown = only.filter((name) => !all.some((mutant) => mutant.name === name))
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

if (values.help) console.log(usage((await readList()).length))
else {
  const { passed, failed } = await main()
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1
}

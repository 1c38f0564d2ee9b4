import { fileURLToPath } from 'node:url'
import { chooseGenerators } from '../generators/choose.ts'
import { cases, type Case } from '../measures/cases.ts'
import { measureThroughput, type Pace } from '../measures/throughput.ts'
import { buildPrograms } from '../programs.ts'
import { throughputHead, throughputLine } from '../report.ts'
import { runToEnd } from '../run-to-end.ts'
import { scratch } from '../scratch.ts'
import { startBefore, startOurs } from '../targets/ours.ts'
import { buildCommit, commitBefore, installsTheSame, NothingBefore } from './state-before.ts'
import { LEAST, verdict, type Verdict } from './verdict.ts'

/**
 * `npm run bench:regression`: compares the throughput of this checkout with the reference state, with
 * default settings, in turns. CONTRIBUTING.md describes how it decides.
 */

/**
 * Other work on the machine comes and goes in tenths of a second, so many short bursts tell more than few
 * long ones.
 */
const FIRST: Pace = { rounds: 11, seconds: 0.2, warmUp: 0.5 }
const AGAIN: Pace = { ...FIRST, rounds: 33 }
/** How often a case that seems to have dropped is measured again, each time with fresh servers. */
const TIMES_AGAIN = 3

const STATUS = { kept: 0, dropped: 1, noisy: 3, leftOut: 3 } as const

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

interface Trial {
  kase: Case
  clients: number
  /** The ratios of the rounds that count: of requests per second, and of those per second of CPU time. */
  rates: number[]
  perCpuTime: number[]
}

/** The exit status: 0; 1 if a case has dropped; 3 if nothing can be said, and then the last line says why. */
async function guard(): Promise<number> {
  try {
    const commit = await commitBefore(ROOT, process.env['SPEED_BEFORE'])
    print(`The state before is ${commit}. Building it.`)
    const before = scratch('before')
    await buildCommit(ROOT, commit, before)
    if (await installsTheSame(ROOT, before)) {
      print('This state installs the same files: there is nothing to measure.')
      return 0
    }
    return await compare(before)
  } catch (error) {
    if (!(error instanceof NothingBefore)) throw error
    print(error.message)
    return STATUS.leftOut
  }
}

function trial(kase: Case, clients: number): Trial {
  return { kase, clients, rates: [], perCpuTime: [] }
}

async function compare(before: string): Promise<number> {
  await buildPrograms()
  const all = [...cases('rest'), ...cases('grpc')].flatMap((kase) =>
    [1, 32].map((clients) => trial(kase, clients)),
  )
  await measure(all, before, FIRST)
  // The rounds for which they were chosen prove nothing.
  const suspects = those(all, ['dropped', 'noisy']).map(({ kase, clients }) => trial(kase, clients))
  let open = suspects
  for (let time = 0; time < TIMES_AGAIN && open.length > 0; time++) {
    print(`\nBelow ${LEAST}: measured again, ${AGAIN.rounds} rounds with fresh servers`)
    await measure(open, before, AGAIN)
    open = those(open, ['noisy'])
  }
  const dropped = those(suspects, ['dropped'])
  print('')
  if (dropped.length > 0) print(`Dropped by more than 40 %: ${names(dropped)}`)
  else if (open.length > 0) print(`The machine is too busy to tell whether these dropped: ${names(open)}`)
  else print('No case has dropped by more than 40 %.')
  if (dropped.length > 0) return STATUS.dropped
  return open.length > 0 ? STATUS.noisy : STATUS.kept
}

/** Measures these cases with servers of their own, and adds the ratios of the rounds. */
async function measure(trials: readonly Trial[], before: string, pace: Pace): Promise<void> {
  const generators = await chooseGenerators()
  const contenders = [
    { target: await startBefore(before, 'default') },
    { target: await startOurs('default'), against: 0, required: () => LEAST },
  ]
  print(`\n${throughputHead}`)
  for (const { kase, clients, rates, perCpuTime } of trials) {
    const rows = await measureThroughput(kase, contenders, clients, generators[kase.protocol], pace)
    print(rows.map(throughputLine).join('\n'))
    rates.push(...rows[1]!.ratio!.rounds)
    perCpuTime.push(...rows[1]!.ratio!.perCpuTime)
  }
  for (const { target } of contenders) await target.stop()
}

function those(trials: readonly Trial[], verdicts: readonly Verdict[]): Trial[] {
  return trials.filter(({ rates, perCpuTime }) => verdicts.includes(verdict(rates, perCpuTime)))
}

function names(trials: readonly Trial[]): string {
  return trials.map(({ kase, clients }) => `${kase.name} with ${clients} clients`).join(', ')
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

await runToEnd(guard)

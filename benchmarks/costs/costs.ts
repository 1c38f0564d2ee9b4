import { Command, Option } from 'commander'
import { chooseGenerators, type Generators } from '../generators/choose.ts'
import { cases } from '../measures/cases.ts'
import {
  type Burst,
  checkedBursts,
  type Contender,
  type Pace,
  rowsOf,
  type ThroughputRow,
} from '../measures/throughput.ts'
import { wholeNumber } from '../options.ts'
import { buildPrograms } from '../programs.ts'
import { headLines, newReport, writeReport } from '../report.ts'
import { runToEnd } from '../run-to-end.ts'
import { quantile } from '../statistics.ts'
import { type Feature, features, startVariant } from './features.ts'

/** `npm run bench:costs`: CPU cost of each feature; prints the table of docs/internals/performance.md. */

const CLIENTS = 32
const HEAD = `| Feature | Switched by | Default | REST: CPU of the frontend | REST: rate | gRPC: CPU of the frontend | gRPC: rate |
|---|---|---|---|---|---|---|`

interface Extent {
  readonly rounds: number
  /** Fresh servers of each kind: of two, one may be faster by a twentieth for as long as they run. */
  readonly sets: number
  readonly streams: boolean
}

async function costs(extent: Extent, only: readonly string[]): Promise<number> {
  const all = features().filter(({ name }) => only.length === 0 || only.includes(name))
  await buildPrograms()
  const generators = await chooseGenerators()
  const report = newReport({ ...extent, only }, generators.rest.name, generators.grpc.name)
  print(`${headLines(report)}\n\n${HEAD}`)
  for (const feature of all) {
    const cells: string[] = []
    for (const rows of await compare(feature, extent, generators)) {
      report.throughput.push(...rows)
      cells.push(...costOf(rows))
    }
    print(`| ${[feature.name, feature.setting, feature.byDefault, ...cells].join(' | ')} |`)
  }
  print(`\n${writeReport(report)}`)
  const short = report.throughput.filter(({ ok }) => ok === false)
  for (const row of short) print(`${row.case} ${row.target}: ${row.ratio!.median}, required ${row.required!}`)
  return short.length === 0 ? 0 : 1
}

/** @returns the rows of each protocol */
async function compare(
  { name, without, with: having, required }: Feature,
  { rounds, sets, streams }: Extent,
  generators: Generators,
): Promise<ThroughputRow[][]> {
  const pace: Pace = { rounds: Math.ceil(rounds / sets), seconds: 0.2, warmUp: 3 }
  const kases = [cases('rest'), cases('grpc')].map(([unary, stream]) => (streams ? stream : unary)!)
  const bursts: Burst[][][] = kases.map(() => [[], []])
  let contenders: Contender[] = []
  for (let set = 0; set < sets; set++) {
    const targets = [
      await startVariant(`without ${name}`, without),
      await startVariant(`with ${name}`, having),
    ]
    contenders = [{ target: targets[0]! }, { target: targets[1]!, against: 0, required }]
    for (const [k, kase] of kases.entries()) {
      const those = await checkedBursts(kase, targets, CLIENTS, generators[kase.protocol], pace)
      for (const [i, each] of those.entries()) bursts[k]![i]!.push(...each)
    }
    for (const target of targets) await target.stop()
  }
  return kases.map((kase, k) => rowsOf(kase, CLIENTS, contenders, bursts[k]!))
}

/** The cells of one protocol: CPU time without and with the feature, and the ratio of the rates. */
function costOf([without, having]: readonly ThroughputRow[]): string[] {
  const [from, to] = [without!.frontendMicroseconds, having!.frontendMicroseconds]
  const { median, rounds } = having!.ratio!
  return [`${from.toFixed(1)} → ${to.toFixed(1)} µs`, `${median.toFixed(2)} (${middle(rounds)})`]
}

/** The range of the middle half of the rounds. */
function middle(ratios: readonly number[]): string {
  return `${quantile(ratios, 0.25).toFixed(2)} to ${quantile(ratios, 0.75).toFixed(2)}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

const command = new Command('bench:costs')
  .description('Measures what each feature costs a request, with 32 clients and default settings.')
  .option('--rounds <n>', 'rounds of each comparison, over all sets', wholeNumber, 33)
  .option('--sets <n>', 'sets of fresh servers; more tell a difference of a hundredth', wholeNumber, 3)
  .option('--streams', 'measure streams of 100 items instead of unary requests')
  .addOption(
    new Option('--only <features...>', 'measure these only').choices(features().map(({ name }) => name)),
  )
const flags = command
  .parse(process.argv)
  .opts<{ rounds: number; sets: number; only?: string[]; streams?: boolean }>()
const { rounds, sets, only, streams } = flags
await runToEnd(() => costs({ rounds, sets, streams: streams === true }, only ?? []))

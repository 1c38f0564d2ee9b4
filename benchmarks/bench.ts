import { chooseGenerators } from './generators/choose.ts'
import { cases, pythonCases, type Case, type Protocol } from './measures/cases.ts'
import { measureDisconnect } from './measures/disconnect.ts'
import type { Figure } from './measures/figure.ts'
import { measureItems } from './measures/items.ts'
import { measureMemory } from './measures/memory.ts'
import { measureStalled } from './measures/stalled.ts'
import { measureStart } from './measures/start.ts'
import { measureThroughput, type Contender } from './measures/throughput.ts'
import { measureViewers } from './measures/viewers.ts'
import { readOptions, type Measure, type Options } from './options.ts'
import { buildPrograms } from './programs.ts'
import {
  figureLine,
  headLines,
  newReport,
  shortfalls,
  summary,
  throughputHead,
  throughputLine,
  writeReport,
  type Report,
} from './report.ts'
import { ofCeiling, TORCHSERVE, WORKER_CEILING } from './requirements.ts'
import { runToEnd } from './run-to-end.ts'
import { startBareHttp, startWorkerGrpc, startWorkerHttp } from './targets/ceilings.ts'
import { startBefore, startOurs } from './targets/ours.ts'
import type { Target } from './targets/target.ts'

/** `npm run bench`: measures every figure of docs/internals/performance.md in one run. */

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** How many requirements were not met. */
async function bench(options: Options): Promise<number> {
  await buildPrograms()
  const generators = await chooseGenerators()
  const report = newReport(options, generators.rest.name, generators.grpc.name)
  print(headLines(report))
  for (const protocol of ['rest', 'grpc'] as const) {
    if (options.only.includes(protocol)) await throughput(protocol, generators, options, report)
  }
  if (options.only.includes('python')) await pythonThroughput(generators, options, report)
  const measure = async (name: Measure, run: () => Promise<Figure[]>): Promise<void> => {
    if (!options.only.includes(name)) return
    const figures = await run()
    report.figures.push(...figures)
    print(figures.map(figureLine).join('\n'))
  }
  print('')
  await measure('memory', () => measureMemory(options))
  await measure('disconnect', () => withOurs(measureDisconnect))
  await measure('items', () => withOurs(measureItems))
  await measure('stalled', () => withOurs(measureStalled))
  await measure('start', () => measureStart(options))
  await measure('viewers', measureViewers)
  print(`\n${writeReport(report)}\n${summary(report)}`)
  return shortfalls(report)
}

async function throughput(
  protocol: Protocol,
  generators: Awaited<ReturnType<typeof chooseGenerators>>,
  options: Options,
  report: Report,
): Promise<void> {
  print(`\n${throughputHead}`)
  const contenders = await contendersOf(protocol, options)
  await compare(cases(protocol), contenders, generators, options, report)
  for (const { target } of contenders) await target.stop()
}

/** The same archives with the same Python in TorchServe and in torchserve-ts. */
async function pythonThroughput(
  generators: Awaited<ReturnType<typeof chooseGenerators>>,
  options: Options,
  report: Report,
): Promise<void> {
  const { startPythonTargets } = await import('./targets/python.ts')
  print(`\n${throughputHead}`)
  const [torchserve, ours] = await startPythonTargets()
  const contenders = [{ target: torchserve }, { target: ours, against: 0, required: TORCHSERVE }]
  try {
    await compare(pythonCases(), contenders, generators, options, report)
  } finally {
    await ours.stop()
    await torchserve.stop()
  }
}

async function compare(
  kases: readonly Case[],
  contenders: readonly Contender[],
  generators: Awaited<ReturnType<typeof chooseGenerators>>,
  options: Options,
  report: Report,
): Promise<void> {
  for (const kase of kases) {
    for (const clients of options.clients) {
      const rows = await measureThroughput(kase, contenders, clients, generators[kase.protocol], options)
      report.throughput.push(...rows)
      print(rows.map(throughputLine).join('\n'))
    }
  }
}

async function contendersOf(protocol: Protocol, options: Options): Promise<Contender[]> {
  if (options.before === undefined)
    return protocol === 'rest' ? restContenders(options) : grpcContenders(options)
  const contenders: Contender[] = []
  for (const settings of options.settings) {
    const against = contenders.length
    contenders.push({ target: await startBefore(options.before, settings) })
    contenders.push({ target: await startOurs(settings), against, required: () => options.atLeast })
  }
  return contenders
}

async function restContenders(options: Options): Promise<Contender[]> {
  const ceilings = [
    { target: await startBareHttp() },
    { target: await startWorkerHttp(), against: 0, required: WORKER_CEILING },
  ]
  if (options.ceilingsOnly) return ceilings
  return [...ceilings, ...(await ours(options, 1))]
}

async function grpcContenders(options: Options): Promise<Contender[]> {
  const ceiling = { target: await startWorkerGrpc() }
  if (options.ceilingsOnly) return [ceiling]
  return [ceiling, ...(await ours(options, 0))]
}

/** torchserve-ts with each of the settings, compared with a ceiling. */
async function ours({ settings }: Options, against: number): Promise<Contender[]> {
  const contenders: Contender[] = []
  for (const each of settings)
    contenders.push({ target: await startOurs(each), against, required: ofCeiling(each) })
  return contenders
}

async function withOurs<R>(measure: (ours: Target) => Promise<R>): Promise<R> {
  const ours = await startOurs()
  try {
    return await measure(ours)
  } finally {
    await ours.stop()
  }
}

const options = readOptions(process.argv)
await runToEnd(async () => ((await bench(options)) === 0 ? 0 : 1))

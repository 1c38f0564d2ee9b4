import { mkdirSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { growBodies } from './growth/bodies.ts'
import { growItems } from './growth/items.ts'
import { growModels } from './growth/models.ts'
import { type GrowthMeasure, type GrowthOptions, readGrowthOptions } from './growth/options.ts'
import { drawPlot } from './growth/plot.ts'
import { growQueue } from './growth/queue.ts'
import type { Result } from './growth/result.ts'
import { growStreams } from './growth/streams.ts'
import { growWorkers } from './growth/workers.ts'
import { runToEnd } from './run-to-end.ts'
import { figureLine, newReport, shortfalls, summary, writeReport } from './report.ts'

/** `npm run bench:growth`: measures every figure of docs/internals/growth.md and draws its plots. */

const MEASURES: Readonly<Record<GrowthMeasure, (options: GrowthOptions) => Promise<Result>>> = {
  streams: growStreams,
  models: growModels,
  workers: growWorkers,
  items: growItems,
  bodies: growBodies,
  queue: growQueue,
}

const print = (text: string): void => {
  process.stdout.write(`${text}\n`)
}

/** How many requirements were not met. */
async function bench(options: GrowthOptions): Promise<number> {
  const report = { ...newReport({ ...options, starter: undefined }, 'own', 'none'), curves: {} }
  const { node, platform, cores, cpu, loadBefore } = report.environment
  print(`Node ${node}, ${platform}, ${cores} cores (${cpu}), load before ${loadBefore.toFixed(2)}`)
  for (const name of options.only) {
    print(`\n${name}`)
    const { curves, figures, plots } = await MEASURES[name](options)
    Object.assign(report.curves, curves)
    report.figures.push(...figures)
    for (const [curve, points] of Object.entries(curves)) print(curveLines(curve, points))
    print(figures.map(figureLine).join('\n'))
    if (options.draw) for (const { file, title, panels } of plots) draw(file, drawPlot(title, panels))
  }
  print(`\n${writeReport(report)}\n${summary(report)}`)
  return shortfalls(report)
}

/** One line for each size. */
function curveLines(name: string, points: readonly object[]): string {
  const lines = points.map((point) =>
    Object.entries(point)
      .filter(([, value]) => typeof value === 'number')
      .map(([key, value]) => `${key} ${Number((value as number).toPrecision(4))}`.padEnd(22))
      .join('')
      .trimEnd(),
  )
  return `${name}\n${lines.map((line) => `  ${line}`).join('\n')}`
}

function draw(file: string, svg: string): void {
  const folder = fileURLToPath(new URL('../docs/growth/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}${file}.svg`, svg)
}

const options = readGrowthOptions(process.argv)
await runToEnd(async () => ((await bench(options)) === 0 ? 0 : 1))

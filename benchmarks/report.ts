import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import type { Figure } from './measures/figure.ts'
import type { ThroughputRow } from './measures/throughput.ts'

/** Where a run was. */
export interface Environment {
  node: string
  platform: string
  cpu: string
  cores: number
  /** Load average of the last minute before the run. */
  loadBefore: number
  restGenerator: string
  grpcGenerator: string
}

export interface Report {
  startedAt: string
  environment: Environment
  options: object
  throughput: ThroughputRow[]
  figures: Figure[]
}

export function newReport(options: object, restGenerator: string, grpcGenerator: string): Report {
  return {
    startedAt: new Date().toISOString(),
    environment: environment(restGenerator, grpcGenerator),
    options,
    throughput: [],
    figures: [],
  }
}

export function environment(restGenerator: string, grpcGenerator: string): Environment {
  return {
    node: process.version,
    platform: `${process.platform}-${process.arch}`,
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    loadBefore: loadavg()[0]!,
    restGenerator,
    grpcGenerator,
  }
}

export function headLines(report: { environment: Environment }): string {
  const { node, platform, cores, cpu, loadBefore, restGenerator, grpcGenerator } = report.environment
  return `Node ${node}, ${platform}, ${cores} cores (${cpu}), load before ${loadBefore.toFixed(2)}
REST by ${restGenerator}, gRPC by ${grpcGenerator}. Ratios are medians of paired rounds (least to greatest).`
}

export const throughputHead = line([
  'case', 'clients', 'target', 'req/s', 'chunks/s', 'p50 ms', 'p99 ms', 'cpu us/req', 'ratio', 'required', '',
]) // prettier-ignore

export function throughputLine(row: ThroughputRow): string {
  const { ratio, against, required } = row
  return line([
    row.case,
    String(row.clients),
    row.target,
    row.requestsPerSecond.toFixed(0),
    row.chunksPerSecond?.toFixed(0) ?? '',
    row.p50?.toFixed(2) ?? '',
    row.p99?.toFixed(2) ?? '',
    row.cpuMicroseconds.toFixed(0),
    ratio === undefined
      ? ''
      : `${ratio.median.toFixed(2)} (${ratio.min.toFixed(2)} to ${ratio.max.toFixed(2)}) of ${against!}`,
    required === undefined ? '' : `>= ${required}`,
    verdict(row.ok),
  ])
}

export function figureLine(figure: Figure): string {
  const { atMost, atLeast, unit, value } = figure
  const digits = Number.isInteger(value) || (unit === 'ms' && value > 100) ? 0 : 2
  const required = atMost !== undefined ? `<= ${atMost}` : atLeast !== undefined ? `>= ${atLeast}` : ''
  const told = `${value.toFixed(digits)} ${unit}`
  return `${figure.name.padEnd(58)}${told.padStart(14)}  ${required.padEnd(9)}${verdict(figureOk(figure))}`.trimEnd()
}

export function figureOk({ value, atMost, atLeast }: Figure): boolean | undefined {
  if (atMost === undefined && atLeast === undefined) return undefined
  return value <= (atMost ?? Infinity) && value >= (atLeast ?? -Infinity)
}

/** Number of figures that miss their limit. */
export function shortfalls(report: Report): number {
  return required(report).filter((ok) => !ok).length
}

/** The last line of a run. */
export function summary(report: Report): string {
  const all = required(report).length
  if (all === 0) return 'Nothing is required of what was measured.'
  const missed = shortfalls(report)
  return missed === 0 ? `Every requirement is met (${all}).` : `${missed} of ${all} requirements are not met.`
}

/** Of every requirement whether it is met. */
function required(report: Report): boolean[] {
  const all = [...report.throughput.map(({ ok }) => ok), ...report.figures.map(figureOk)]
  return all.filter((ok) => ok !== undefined)
}

/** Writes benchmarks/results/<time>.json and returns its path. */
export function writeReport(report: Report): string {
  const folder = fileURLToPath(new URL('results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  const path = `${folder}${report.startedAt.replaceAll(':', '-')}.json`
  writeFileSync(path, `${JSON.stringify(report, null, 2)}\n`)
  return path
}

function verdict(ok: boolean | undefined): string {
  if (ok === undefined) return ''
  return ok ? 'ok' : 'SHORT'
}

function line(cells: string[]): string {
  const widths = [12, 8, 16, 9, 10, 8, 8, 11, 42, 9, 0]
  return cells
    .map((cell, i) => cell.padEnd(widths[i]!))
    .join(' ')
    .trimEnd()
}

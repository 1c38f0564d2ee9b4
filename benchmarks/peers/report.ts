import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { environment, type Environment } from '../report.ts'
import type { BatchRow } from './batches.ts'
import type { IdleRow } from './idle.ts'
import type { PeerOptions } from './options.ts'
import type { Peer } from './peer.ts'
import type { Verdict } from './requirements.ts'
import { spreadText } from './spread.ts'
import type { Absence, PeerRow } from './throughput.ts'
import type { TimesRow } from './times.ts'

export interface PeerReport {
  startedAt: string
  seconds?: number
  environment: Environment
  options: PeerOptions
  /** What was compared, with its settings, and all that is installed for it. */
  peers: (Pick<Peer, 'title' | 'packages' | 'settings'> & { installed: readonly string[] })[]
  /** Peers and cases that were left out, each with its reason. */
  absent: Absence[]
  throughput: PeerRow[]
  /** With the number of workers that each server takes or recommends here. */
  recommended: PeerRow[]
  times: TimesRow[]
  idle: IdleRow[]
  batches: BatchRow[]
  verdicts: Verdict[]
}

export function newPeerReport(
  options: PeerOptions,
  restGenerator: string,
  grpcGenerator: string,
): PeerReport {
  return {
    startedAt: new Date().toISOString(),
    environment: environment(restGenerator, grpcGenerator),
    options,
    ...{
      peers: [],
      absent: [],
      throughput: [],
      recommended: [],
      times: [],
      idle: [],
      batches: [],
      verdicts: [],
    },
  }
}

export function settingsLines({ title, packages, settings }: Peer): string {
  return [`${title}: ${packages.join(', ')}`, ...settings.map((line) => `  ${line}`)].join('\n')
}

export function absenceLine({ target, what, reason }: Absence): string {
  return `${target}, ${what}: ${reason}`
}

const ROW_WIDTHS = [12, 26, 28, 9, 7, 8, 9, 11, 6, 7, 0]

export const rowHead = line(ROW_WIDTHS, [
  'case', 'server', 'requests/s (range)', 'items/s', 'pieces', 'p50 ms', 'p99 ms', 'cpu us/req', 'load', 'errors', 'ours / this',
]) // prettier-ignore

export function rowLine(row: PeerRow): string {
  return line(ROW_WIDTHS, [
    row.case,
    row.target,
    spreadText(row.perSecond, 0),
    row.itemsPerSecond?.toFixed(0) ?? '',
    String(row.pieces),
    row.p50?.toFixed(1) ?? '',
    row.p99?.toFixed(1) ?? '',
    row.cpuMicroseconds.toFixed(0),
    `${(row.generatorShare * 100).toFixed(0)} %`,
    String(row.errors),
    row.ratio === undefined ? '' : spreadText(row.ratio, 1),
  ])
}

const TIME_WIDTHS = [26, 32, 24, 0]

export const timesHead = line(TIME_WIDTHS, [
  'server',
  'added to first chunk, ms (range)',
  'reads of several items',
  'latest item, ms',
])

export function timesLine(row: TimesRow): string {
  return line(TIME_WIDTHS, [
    row.target,
    spreadText(row.added, 2),
    `${(row.joined * 100).toFixed(0)} % of ${row.reads}`,
    row.latest.toFixed(1),
  ])
}

export function idleLine({ target, kilobytes, streams, baseMegabytes }: IdleRow): string {
  const base = `server before them ${baseMegabytes.toFixed(0)} MB`
  return line([26, 44, 0], [target, `${kilobytes.toFixed(1)} KB per idle stream at ${streams}`, base])
}

const BATCH_WIDTHS = [14, 8, 11, 9, 26, 26, 20, 0]

export const batchHead = line(BATCH_WIDTHS, [
  'peer', 'batch', 'handler ms', 'clients', 'ours/s (range)', 'peer/s (range)', 'ratio (range)', 'in full batches',
]) // prettier-ignore

export function batchLine(row: BatchRow): string {
  return line(BATCH_WIDTHS, [
    ...[row.target, String(row.batchSize), String(row.handlerMs), String(row.clients)],
    ...[spreadText(row.ours, 1), spreadText(row.theirs, 1), spreadText(row.ratio, 2)],
    `${percent(row.oursFull)} and ${percent(row.theirsFull)}`,
  ])
}

export function percent(share: number): string {
  return `${(share * 100).toFixed(0)} %`
}

export function verdictLine({ what, required, value, ok }: Verdict): string {
  const word = ok === undefined ? 'not measured' : ok ? 'ok' : 'SHORT'
  return line([58, 14, 12, 0], [what, required, value ?? '', word])
}

/** Writes the raw data, every round of it. @returns its path */
export function writePeerReport(report: PeerReport): string {
  const name = `peers-${report.startedAt.replaceAll(':', '-')}.json`
  const path = report.options.output ?? fileURLToPath(new URL(`../results/${name}`, import.meta.url))
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `${JSON.stringify(report, null, 1)}\n`)
  return path
}

function line(widths: readonly number[], cells: readonly string[]): string {
  return cells
    .map((cell, i) => cell.padEnd(widths[i]!))
    .join(' ')
    .trimEnd()
}

import { percent, type PeerReport } from './report.ts'
import { spreadText } from './spread.ts'
import type { PeerRow } from './throughput.ts'

/** The tables of docs/internals/peers.md, from the raw data of a run. */
export function markdown(report: PeerReport): string {
  const { cpu, cores, node, restGenerator, grpcGenerator, loadBefore } = report.environment
  const { rounds, seconds, clients, streams } = report.options
  return [
    `${report.startedAt.slice(0, 10)}, ${cores} cores (${cpu}), load before ${loadBefore.toFixed(1)}, Node ${node}, ` +
      `${restGenerator} and ${grpcGenerator}, ${rounds} rounds of ${seconds} s, ${clients} clients, one worker each:`,
    throughput(report.throughput),
    'With the number of workers that each server takes by default here, where that is not one:',
    throughput(report.recommended),
    'One client, without other load:',
    times(report),
    `Memory per idle stream, ${streams} streams, fresh servers:`,
    idle(report),
    ...batches(report),
    'Requirements:',
    table(
      ['Requirement', 'Required', 'Measured', ''],
      report.verdicts.map(({ what, required, value, ok }) => [
        ...[what, required, value ?? ''],
        ok === undefined ? 'not measured' : ok ? 'met' : 'missed',
      ]),
    ),
    ...report.absent.map(({ target, what, reason }) => `- ${target}, ${what}: ${reason.split('\n')[0]!}`),
  ].join('\n\n')
}

/** Raw data may have none. */
function batches({ batches: rows = [] }: Partial<PeerReport>): string[] {
  if (rows.length === 0) return []
  return [
    'Batches, `maxBatchDelay: 20`, a handler that takes so long for each batch:',
    table(
      ['Batch', 'Handler', 'Clients', 'torchserve-ts, requests/s', 'TorchServe, requests/s', 'Ratio (range)', 'In full batches'],
      rows.map((row) => [
        ...[String(row.batchSize), `${row.handlerMs} ms`, String(row.clients)],
        ...[row.ours.median.toFixed(1), row.theirs.median.toFixed(1), spreadText(row.ratio, 2)],
        `${percent(row.oursFull)}, ${percent(row.theirsFull)}`,
      ]),
    ),
  ] // prettier-ignore
}

function throughput(rows: readonly PeerRow[]): string {
  return table(
    ['Case', 'Server', 'Requests/s (range)', 'Items/s', 'CPU of a request', "Generator's CPU", 'torchserve-ts / this (range)'],
    rows.map((row) => [
      row.case,
      row.target,
      spreadText(row.perSecond, 0),
      row.itemsPerSecond?.toFixed(0) ?? '',
      `${(row.cpuMicroseconds / 1000).toFixed(2)} ms`,
      `${(row.generatorShare * 100).toFixed(0)} %`,
      row.ratio === undefined ? '' : spreadText(row.ratio, 1),
    ]),
  ) // prettier-ignore
}

function times({ times }: PeerReport): string {
  return table(
    ['Server', 'Added to the first chunk, ms (range)', 'Reads with several items at a 20 ms gap'],
    times.map(({ target, added, joined, reads }) => [
      ...[target, spreadText(added, 2)],
      `${(joined * 100).toFixed(0)} % of ${reads}`,
    ]),
  )
}

function idle({ idle }: PeerReport): string {
  return table(
    ['Server', 'KB per idle stream', 'Server before them, MB'],
    idle.map(({ target, kilobytes, baseMegabytes }) => [
      target,
      kilobytes.toFixed(1),
      baseMegabytes.toFixed(0),
    ]),
  )
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n')
}

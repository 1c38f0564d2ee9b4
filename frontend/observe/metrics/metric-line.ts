import type { MetricKind, MetricMessage } from '../../../protocol/messages.ts'

/**
 * A metric as TorchServe's Python workers print it (ts/metrics/metric.py), optionally after `INFO > `:
 * `[METRICS]Name.Unit:value|#Dim1:v1,Dim2:v2|#type:GAUGE|#hostname:HOST,<unix s>[,id[,id...]]`.
 */
const LINE =
  /^(?:INFO > )?\[METRICS\]([\w\s]+)\.([\w\s]+):([0-9\-,.e]+)\|#([^|]*)(?:\|#type:([^|,]+))?\|#hostname:([^,]+),([^,]+)(?:,(.*))?$/

const KINDS: ReadonlyMap<string, MetricKind> = new Map([
  ['COUNTER', 'counter'],
  ['GAUGE', 'gauge'],
  ['HISTOGRAM', 'histogram'],
])

/** Whether a line of a worker's output is marked as a metric. */
export function isMetricLine(line: string): boolean {
  return line.startsWith('[METRICS]') || line.startsWith('INFO > [METRICS]')
}

/** Parses a line; undefined: it is not a metric. */
export function parseMetricLine(line: string): MetricMessage | undefined {
  const [whole, name, unit, text, dimensions, type = 'COUNTER', , , requestId = ''] = LINE.exec(line) ?? []
  const kind = KINDS.get(type)
  const value = Number(text)
  if (whole === undefined || kind === undefined || !Number.isFinite(value)) return undefined
  return {
    type: 'metric',
    name: name!.trim(),
    kind,
    unit: unit!,
    dimensions: pairsOf(dimensions!),
    values: [value],
    requestIds: [requestId],
  }
}

/** Skips malformed pairs, as TorchServe does. */
function pairsOf(text: string): Record<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.split(':'))
    .filter((pair) => pair.length === 2)
  return Object.fromEntries(pairs) as Record<string, string>
}

import type { MetricKind, MetricMessage } from '../../../protocol/messages.ts'

/**
 * A metric as TorchServe's Python workers print it (spec 8.4, 4.7):
 * `[METRICS]Name.Unit:value|#Dim1:v1,Dim2:v2|#type:GAUGE|#hostname:HOST,<unix s>[,id[,id...]]`, perhaps after `INFO > `.
 */
const LINE =
  /^(?:INFO > )?\[METRICS\]([\w\s]+)\.([\w\s]+):([0-9\-,.e]+)\|#([^|]*)(?:\|#type:([^|,]+))?\|#hostname:([^,]+),([^,]+)(?:,(.*))?$/

const KINDS: ReadonlyMap<string, MetricKind> = new Map([
  ['COUNTER', 'counter'],
  ['GAUGE', 'gauge'],
  ['HISTOGRAM', 'histogram'],
])

/** Whether a line of a worker's output is meant to be a metric. */
export function isMetricLine(line: string): boolean {
  return line.startsWith('[METRICS]') || line.startsWith('INFO > [METRICS]')
}

/** The metric of a line; undefined: it is none. */
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

/** Pairs that are none are left out, as in TorchServe. */
function pairsOf(text: string): Record<string, string> {
  const pairs = text
    .split(',')
    .map((pair) => pair.split(':'))
    .filter((pair) => pair.length === 2)
  return Object.fromEntries(pairs) as Record<string, string>
}

import { readFileSync } from 'node:fs'
import { ServeError } from '../../../common/errors.ts'
import { isObject } from '../../../common/json.ts'
import type { MetricKind, MetricSpec } from '../../../protocol/messages.ts'
import { defaultMetricsConfig } from '../../package-info.ts'

/** The metrics that metrics.yaml declares (docs/metrics-and-logs.md; TorchServe's docs/metrics.md). */
export interface MetricsConfig {
  /** Metrics of the server. */
  readonly ts: readonly MetricSpec[]
  /** Metrics of handlers, without the dimension Hostname, which all of them get. */
  readonly model: readonly MetricSpec[]
}

/** Used when the file is invalid: TorchServe's metrics are off. */
export const NO_METRICS: MetricsConfig = { ts: [], model: [] }

const KINDS: readonly MetricKind[] = ['counter', 'gauge', 'histogram']
/** YAML's default limit on aliases is too low for files that use `*hostname` in every metric. */
const MAX_ALIASES = 100_000

/** @throws ServeError CONFIG: one line with the path, the place in the file and the problem */
export async function readMetricsConfig(path = defaultMetricsConfig): Promise<MetricsConfig> {
  try {
    const { parse } = await import('yaml')
    const text = readFileSync(path, 'utf8')
    return checkMetricsConfig(parse(text, { prettyErrors: false, maxAliasCount: MAX_ALIASES }))
  } catch (cause) {
    const [why] = (cause as Error).message.split('\n')
    throw new ServeError('CONFIG', `The metrics configuration ${path} cannot be used: ${why}`, { cause })
  }
}

/** @throws TypeError with the place and the problem */
export function checkMetricsConfig(content: unknown): MetricsConfig {
  const { dimensions, ts_metrics, model_metrics, ...others } = mapAt('the file', content)
  refuseOthers('the file', others)
  if (dimensions !== undefined) textsAt('dimensions', dimensions)
  return { ts: section('ts_metrics', ts_metrics), model: section('model_metrics', model_metrics) }
}

function section(name: string, content: unknown): MetricSpec[] {
  if (content === undefined || content === null) return []
  const { counter, gauge, histogram, ...others } = mapAt(name, content)
  refuseOthers(name, others)
  const lists = { counter, gauge, histogram }
  const specs = KINDS.flatMap((kind) => specsOf(`${name}.${kind}`, kind, lists[kind]))
  const names = specs.map((spec) => spec.name)
  const twice = names.find((each, at) => names.indexOf(each) !== at)
  if (twice !== undefined) throw new TypeError(`${name}: ${twice} is declared twice`)
  return specs
}

function specsOf(place: string, kind: MetricKind, list: unknown): MetricSpec[] {
  if (list === undefined || list === null) return []
  if (!Array.isArray(list)) throw new TypeError(`${place}: a list is expected`)
  return list.map((content: unknown, index) => specAt(`${place}[${index}]`, kind, content))
}

function specAt(place: string, kind: MetricKind, content: unknown): MetricSpec {
  const { name, unit, dimensions, ...others } = mapAt(place, content)
  refuseOthers(place, others)
  return {
    name: textAt(`${place}.name`, name),
    kind,
    unit: textAt(`${place}.unit`, unit),
    dimensions: textsAt(`${place}.dimensions`, dimensions ?? []),
  }
}

function mapAt(place: string, value: unknown): Record<string, unknown> {
  if (isObject(value)) return value
  throw new TypeError(`${place}: a map is expected`)
}

function refuseOthers(place: string, others: object): void {
  const [unknown] = Object.keys(others)
  if (unknown !== undefined) throw new TypeError(`${place}: unknown key ${unknown}`)
}

function textsAt(place: string, value: unknown): string[] {
  if (!Array.isArray(value)) throw new TypeError(`${place}: a list of names is expected`)
  const names = value.map((each: unknown, index) => textAt(`${place}[${index}]`, each))
  if (new Set(names).size < names.length) throw new TypeError(`${place}: a name stands there twice`)
  return names
}

function textAt(place: string, value: unknown): string {
  if (typeof value === 'string' && value.trim() !== '') return value
  throw new TypeError(`${place}: a text is expected that is not empty`)
}

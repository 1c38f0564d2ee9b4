import type { MetricKind } from '../../../protocol/messages.ts'
import type { Distribution } from './distribution.ts'

/** One line of the page. */
export interface Sample {
  name: string
  /** See `labelText`. */
  labels: string
  value: number
}

/** One metric with all its label sets. */
export interface PageFamily {
  readonly name: string
  readonly help: string
  readonly kind: MetricKind
  samples(): Sample[]
}

export const PAGE_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/**
 * Renders the Prometheus text format exactly as TorchServe does: labels end with a comma, whole numbers with
 * `.0`, and metrics without samples have a head. `names` selects samples and drops empty heads.
 */
export function renderPage(families: Iterable<PageFamily>, names: readonly string[] = []): string {
  const wanted = new Set(names)
  let page = ''
  for (const family of families) {
    const all = family.samples()
    const samples = wanted.size === 0 ? all : all.filter(({ name }) => wanted.has(name))
    if (samples.length > 0 || wanted.size === 0) page += head(family) + samples.map(line).join('')
  }
  return page
}

/** `a="1",b="2",` */
export function labelText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeLabel(values[index] ?? '')}",`).join('')
}

/** Samples of a histogram: cumulative buckets, sum and count. */
export function distributionSamples(name: string, labels: string, distribution: Distribution): Sample[] {
  const { bounds, counts, sum } = distribution
  let total = 0
  const buckets = [...counts].map((count, bucket): Sample => {
    total += count
    const bound = number(bounds[bucket] ?? Infinity)
    return { name: `${name}_bucket`, labels: `${labels}le="${bound}",`, value: total }
  })
  return [
    ...buckets,
    { name: `${name}_count`, labels, value: total },
    { name: `${name}_sum`, labels, value: sum },
  ]
}

/** A number as Java writes doubles, but with an exponent only where one is needed. */
export function number(value: number): string {
  if (Number.isInteger(value)) return Math.abs(value) < 1e21 ? `${value}.0` : String(value)
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

function head({ name, help, kind }: PageFamily): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`
}

function line({ name, labels, value }: Sample): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${number(value)}\n`
}

function escapeLabel(value: string): string {
  return value.replace(/[\\"\n]/g, (letter) => (letter === '\n' ? '\\n' : `\\${letter}`))
}

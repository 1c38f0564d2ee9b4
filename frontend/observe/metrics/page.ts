import type { MetricKind } from '../../../protocol/messages.ts'
import { setOwn } from '../../../common/json.ts'
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
  samples(): Iterable<Sample>
}

export const PAGE_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** Characters that are collected as text before they become bytes. */
const BLOCK = 65_536

/**
 * Renders the Prometheus text format exactly as TorchServe does: labels end with a comma, whole numbers with
 * `.0`, and metrics without samples have a head. `names` selects samples and drops empty heads. Thousands of
 * models have a million lines, so none of them is kept as an object or a piece of text.
 */
export function renderPage(families: Iterable<PageFamily>, names: readonly string[] = []): Buffer {
  const wanted = new Set(names)
  const blocks: Buffer[] = []
  let text = ''
  for (const family of families) {
    let above = head(family)
    if (wanted.size === 0) {
      text += above
      above = ''
    }
    for (const sample of family.samples()) {
      if (wanted.size > 0 && !wanted.has(sample.name)) continue
      text += above + line(sample)
      above = ''
      if (text.length < BLOCK) continue
      blocks.push(Buffer.from(text))
      text = ''
    }
  }
  blocks.push(Buffer.from(text))
  return Buffer.concat(blocks)
}

/** `a="1",b="2",` */
export function labelText(names: readonly string[], values: readonly string[]): string {
  return names.map((name, index) => `${name}="${escapeLabel(values[index] ?? '')}",`).join('')
}

/** The inverse of `labelText`. */
export function splitLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {}
  for (const [, name, value] of text.matchAll(/([^=,]+)="((?:[^"\\]|\\.)*)",/gs)) {
    const plain = value!.replace(/\\(.)/gs, (_, letter: string) => (letter === 'n' ? '\n' : letter))
    setOwn(labels, name!, plain)
  }
  return labels
}

/** Samples of a histogram: cumulative buckets, sum and count. */
export function* distributionSamples(
  name: string,
  labels: string,
  { bounds, counts, sum }: Distribution,
): Iterable<Sample> {
  const bucketName = `${name}_bucket`
  const limits = limitsOf(bounds)
  let total = 0
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    total += counts[bucket]!
    yield { name: bucketName, labels: labels + limits[bucket]!, value: total }
  }
  yield { name: `${name}_count`, labels, value: total }
  yield { name: `${name}_sum`, labels, value: sum }
}

/** The label `le` of each bucket, by the bounds: a page has thousands of histograms with the same ones. */
const LIMITS = new WeakMap<readonly number[], string[]>()

function limitsOf(bounds: readonly number[]): string[] {
  const known = LIMITS.get(bounds)
  if (known !== undefined) return known
  const limits = [...bounds, Infinity].map((bound) => labelText(['le'], [number(bound)]))
  LIMITS.set(bounds, limits)
  return limits
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

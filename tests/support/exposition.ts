/** One sample of a metrics page. */
export interface Sample {
  name: string
  labels: Record<string, string>
  value: number
}

/** One metric of a page, as its HELP and TYPE lines say it. */
export interface Family {
  help: string
  type: string
  samples: Sample[]
}

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/s
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\[\\n"])*)",?/y

/**
 * Parses a page in the Prometheus text format 0.0.4, as strictly as a scraper: every sample belongs to the
 * metric above it, and no two have the same name and labels. @throws Error
 */
export class Exposition {
  readonly families = new Map<string, Family>()
  readonly samples: Sample[] = []

  constructor(page: string) {
    let current: { name: string; family: Family } | undefined
    const seen = new Set<string>()
    for (const line of page.split('\n').slice(0, -1)) {
      const [, keyword, name, rest] = /^# (HELP|TYPE) (\S+) (.*)$/s.exec(line) ?? []
      if (keyword === 'HELP') {
        if (this.families.has(name!)) throw new Error(`${name} stands there twice`)
        current = { name: name!, family: { help: rest!, type: '', samples: [] } }
        this.families.set(name!, current.family)
      } else if (keyword === 'TYPE') {
        if (current?.name !== name) throw new Error(`TYPE without HELP: ${line}`)
        current!.family.type = rest!
      } else {
        const sample = parseSample(line)
        if (current === undefined || !belongs(sample.name, current)) throw new Error(`Out of place: ${line}`)
        const key = `${sample.name} ${JSON.stringify(Object.entries(sample.labels).sort())}`
        if (seen.has(key)) throw new Error(`Twice: ${line}`)
        seen.add(key)
        current.family.samples.push(sample)
        this.samples.push(sample)
      }
    }
    if (page !== '' && !page.endsWith('\n')) throw new Error('The last line has no end')
  }

  /** The samples of a selector such as `name{label="value"}`. */
  select(name: string, labels: Record<string, string> = {}): Sample[] {
    const wanted = Object.entries(labels)
    return this.samples.filter(
      (sample) => sample.name === name && wanted.every(([key, value]) => sample.labels[key] === value),
    )
  }

  /** `sum(name{...})` */
  sum(name: string, labels: Record<string, string> = {}): number {
    return this.select(name, labels).reduce((sum, { value }) => sum + value, 0)
  }

  /** `sum by (label) (name{...})` */
  sumBy(label: string, name: string, labels: Record<string, string> = {}): Record<string, number> {
    const sums: Record<string, number> = {}
    for (const sample of this.select(name, labels)) {
      const key = sample.labels[label] ?? ''
      sums[key] = (sums[key] ?? 0) + sample.value
    }
    return sums
  }

  /** `histogram_quantile(q, sum by (le) (name_bucket{...}))`: the upper bound of the bucket that holds it. */
  quantile(q: number, name: string, labels: Record<string, string> = {}): number {
    const buckets = Object.entries(this.sumBy('le', `${name}_bucket`, labels))
      .map(([le, count]): [number, number] => [le === '+Inf' ? Infinity : Number(le), count])
      .sort(([a], [b]) => a - b)
    const total = buckets.at(-1)?.[1] ?? 0
    return buckets.find(([, count]) => count >= q * total)?.[0] ?? NaN
  }
}

function belongs(sample: string, { name, family }: { name: string; family: Family }): boolean {
  if (family.type !== 'histogram') return sample === name
  return ['_bucket', '_count', '_sum'].some((ending) => sample === name + ending)
}

function parseSample(line: string): Sample {
  const [whole, name, text = '', value] = SAMPLE.exec(line) ?? []
  if (whole === undefined) throw new Error(`No sample: ${line}`)
  const labels: Record<string, string> = {}
  LABEL.lastIndex = 0
  while (LABEL.lastIndex < text.length) {
    const found = LABEL.exec(text)
    if (found === null) throw new Error(`No labels: ${line}`)
    labels[found[1]!] = found[2]!.replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter))
  }
  const number = value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value)
  if (Number.isNaN(number) && value !== 'NaN') throw new Error(`No value: ${line}`)
  return { name: name!, labels, value: number }
}

import type { MetricKind } from '../../../protocol/messages.ts'
import type { PageFamily } from './page.ts'

const METRIC_NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const LABEL_NAME = /^(?!__)[a-zA-Z_][a-zA-Z0-9_]*$/

/** Metrics of the page, in order. Sample names must be unique, or Prometheus rejects the page. */
export class Families implements Iterable<PageFamily> {
  readonly #families = new Set<PageFamily>()
  readonly #taken = new Set<string>()

  /** Adds a metric to the page. Returns the reason if that is impossible. */
  add(family: PageFamily, labelNames: readonly string[] = []): string | undefined {
    if (!METRIC_NAME.test(family.name)) return 'its name is not valid in Prometheus'
    const label = labelNames.find((each) => !LABEL_NAME.test(each) || isOwn(family.kind, each))
    if (label !== undefined) return `its label ${label} is not valid in Prometheus`
    const names = sampleNames(family)
    if (names.some((name) => this.#taken.has(name))) return 'another metric has this name'
    for (const name of names) this.#taken.add(name)
    this.#families.add(family)
    return undefined
  }

  remove(family: PageFamily): void {
    if (!this.#families.delete(family)) return
    for (const name of sampleNames(family)) this.#taken.delete(name)
  }

  [Symbol.iterator](): Iterator<PageFamily> {
    return this.#families[Symbol.iterator]()
  }
}

function isOwn(kind: MetricKind, label: string): boolean {
  return kind === 'histogram' && label === 'le'
}

function sampleNames({ name, kind }: PageFamily): string[] {
  return kind === 'histogram' ? [name, `${name}_bucket`, `${name}_count`, `${name}_sum`] : [name]
}

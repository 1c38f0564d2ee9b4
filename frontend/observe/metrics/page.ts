import type { MetricKind } from '../../../protocol/messages.ts'
import { number, type Sample } from './sample.ts'

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

function head({ name, help, kind }: PageFamily): string {
  return `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${kind}\n`
}

function line({ name, labels, value }: Sample): string {
  return `${name}${labels === '' ? '' : `{${labels}}`} ${number(value)}\n`
}

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

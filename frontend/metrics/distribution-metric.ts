import { Histogram, type MetricObjectWithValues, type MetricValueWithName, type Registry } from 'prom-client'
import { BUCKETS, type Distribution } from './tally.ts'

/** One labelled distribution. */
export interface LabelledDistribution {
  labels: Record<string, string>
  distribution: Distribution
}

/** Shows distributions that are kept elsewhere as a Prometheus histogram; it observes nothing itself. */
export class DistributionMetric extends Histogram {
  readonly #read: () => LabelledDistribution[]

  constructor(options: {
    name: string
    help: string
    registry: Registry
    read: () => LabelledDistribution[]
  }) {
    super({ name: options.name, help: options.help, buckets: [...BUCKETS], registers: [options.registry] })
    this.#read = options.read
  }

  override async get(): Promise<MetricObjectWithValues<MetricValueWithName<string>>> {
    const empty = await super.get()
    return { ...empty, values: this.#read().flatMap((each) => this.#samples(empty.name, each)) }
  }

  #samples(name: string, { labels, distribution }: LabelledDistribution): MetricValueWithName<string>[] {
    let total = 0
    const buckets = [...distribution.counts].map((count, bucket) => {
      total += count
      const le = bucket < BUCKETS.length ? BUCKETS[bucket]! : '+Inf'
      return { metricName: `${name}_bucket`, labels: { le, ...labels }, value: total }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: distribution.sum },
      { metricName: `${name}_count`, labels, value: total },
    ]
  }
}

import { ValueType, type Attributes, type HrTime } from '@opentelemetry/api'
import { hrTime } from '@opentelemetry/core'
import { emptyResource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type CollectionResult,
  type DataPoint,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { PageFamily } from '../metrics/page.ts'
import { type Sample, splitLabels } from '../metrics/sample.ts'
import { SCOPE } from './resource.ts'

type Histogram = Extract<
  MetricData,
  { dataPointType: DataPointType.HISTOGRAM }
>['dataPoints'][number]['value']

/** Gives OpenTelemetry the metrics of the Prometheus page, with the same names and labels. */
export class PageProducer implements MetricProducer {
  readonly #startTime = hrTime()
  #families: Iterable<PageFamily> = []

  /** From now on these are exported. */
  watch(families: Iterable<PageFamily>): void {
    this.#families = families
  }

  collect(): Promise<CollectionResult> {
    const times = { startTime: this.#startTime, endTime: hrTime() }
    const metrics = [...this.#families].flatMap((family) => metricOf(family, times))
    const scopeMetrics = [{ scope: SCOPE, metrics }]
    return Promise.resolve({ resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] })
  }
}

interface Times {
  readonly startTime: HrTime
  readonly endTime: HrTime
}

/** None, where the family has no samples. */
function metricOf(family: PageFamily, times: Times): MetricData[] {
  const { name, help, kind } = family
  const about = {
    descriptor: {
      name,
      description: help,
      unit: name.endsWith('_seconds') ? 's' : '',
      valueType: ValueType.DOUBLE,
    },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  }
  const point = <Value>(labels: string, value: Value): DataPoint<Value> => {
    return { ...times, attributes: splitLabels(labels) satisfies Attributes, value }
  }
  if (kind === 'histogram') {
    const dataPoints = histograms(family).map(({ labels, value }) => point(labels, value))
    return dataPoints.length === 0 ? [] : [{ ...about, dataPointType: DataPointType.HISTOGRAM, dataPoints }]
  }
  const dataPoints = Array.from(family.samples(), ({ labels, value }) => point(labels, value))
  if (dataPoints.length === 0) return []
  if (kind === 'gauge') return [{ ...about, dataPointType: DataPointType.GAUGE, dataPoints }]
  return [{ ...about, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }]
}

/** The page has a histogram as cumulative buckets, then its count and its sum. */
function histograms({ name, samples }: PageFamily): { labels: string; value: Histogram }[] {
  const found: { labels: string; value: Histogram }[] = []
  let buckets: Sample[] = []
  let count = 0
  for (const sample of samples()) {
    if (sample.name === `${name}_bucket`) buckets.push(sample)
    else if (sample.name === `${name}_count`) count = sample.value
    else {
      found.push({ labels: sample.labels, value: { buckets: bucketsOf(buckets), count, sum: sample.value } })
      buckets = []
    }
  }
  return found
}

function bucketsOf(samples: readonly Sample[]): Histogram['buckets'] {
  const boundaries = samples.slice(0, -1).map(({ labels }) => Number(splitLabels(labels)['le']))
  return { boundaries, counts: samples.map(({ value }, at) => value - (samples[at - 1]?.value ?? 0)) }
}

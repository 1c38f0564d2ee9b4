import { MeterProvider } from '@opentelemetry/sdk-metrics'
import type { PageFamily } from '../metrics/page.ts'
import type { MetricExporter } from './metric-exporters.ts'
import { metricReaders } from './metric-readers.ts'
import { PageProducer } from './page-producer.ts'
import { serverResource } from './resource.ts'
import type { Environment } from './start.ts'

/** Exports metrics by OpenTelemetry's SDK. */
export class OtelMetrics {
  readonly #page = new PageProducer()
  readonly #provider: MeterProvider

  constructor(exporters: readonly MetricExporter[], env: Environment) {
    const readers = metricReaders(exporters, env, this.#page)
    this.#provider = new MeterProvider({ resource: serverResource(), readers })
  }

  /** These from now on. */
  export(families: Iterable<PageFamily>): void {
    this.#page.watch(families)
  }

  /** Exports them once more. */
  async close(): Promise<void> {
    await this.#provider.shutdown()
  }
}

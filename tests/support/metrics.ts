import { Metrics, type MetricsOptions } from '../../frontend/observe/metrics/metrics.ts'

/** Metrics that nobody declared, without log files, unless `options` say otherwise. */
export function testMetrics(options: Partial<MetricsOptions> = {}): Metrics {
  return new Metrics({
    mode: 'log',
    config: { ts: [], model: [] },
    autoDetect: false,
    files: {},
    warn: () => undefined,
    ...options,
  })
}

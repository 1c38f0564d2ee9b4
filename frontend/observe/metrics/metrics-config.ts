import { readFileSync } from 'node:fs'
import { ServeError } from '../../../common/errors.ts'
import type { MetricKind, MetricSpec } from '../../../protocol/messages.ts'
import { defaultMetricsConfig } from '../../package-info.ts'
import type { MetricsFile } from './metrics-schema.ts'

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

/**
 * @param path undefined: the file of the package
 * @throws ServeError CONFIG: one line with the path, the place in the file and the problem
 */
export async function readMetricsConfig(path?: string): Promise<MetricsConfig> {
  try {
    const { parse } = await import('../../../common/yaml.ts')
    const text = readFileSync(path ?? defaultMetricsConfig, 'utf8')
    const content: unknown = parse(text, { prettyErrors: false, maxAliasCount: MAX_ALIASES })
    return metricsConfigOf(path === undefined ? (content as MetricsFile) : await checked(content))
  } catch (cause) {
    const [why] = (cause as Error).message.split('\n')
    throw new ServeError(
      'CONFIG',
      `The metrics configuration ${path ?? defaultMetricsConfig} cannot be used: ${why}`,
      {
        cause,
      },
    )
  }
}

/** Loads zod only for a user's own file: it costs start time, and the tests check the file of the package. */
async function checked(content: unknown): Promise<MetricsFile> {
  const { checkMetricsFile } = await import('./metrics-schema.ts')
  return checkMetricsFile(content)
}

function metricsConfigOf({ ts_metrics, model_metrics }: MetricsFile): MetricsConfig {
  return { ts: specsOf(ts_metrics), model: specsOf(model_metrics) }
}

function specsOf(section: MetricsFile['ts_metrics']): MetricSpec[] {
  return KINDS.flatMap((kind) =>
    (section?.[kind] ?? []).map(({ name, unit, dimensions }) => ({
      name,
      kind,
      unit,
      dimensions: dimensions ?? [],
    })),
  )
}

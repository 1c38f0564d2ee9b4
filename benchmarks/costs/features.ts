import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ECHO, HUNDRED } from '../ceilings/workload.ts'
import { watch } from '../measures/viewers.ts'
import { type Requirement, TRACED_TENTH } from '../requirements.ts'
import { scratch } from '../scratch.ts'
import { oursCommand, startWith, type OursCommand, type OursOptions } from '../targets/ours.ts'
import type { Target } from '../targets/target.ts'
import { startCollector } from './collector.ts'

/** How a server is started and asked, apart from the default settings without tokens. */
interface Variant extends OursOptions {
  /** The token that requests carry. */
  tokenOf?: (command: OursCommand) => string
  /** The share of requests whose traces go to a collector. Default: tracing is off. */
  traced?: number
  /** How many read the events that the console shows. Default 0. */
  viewers?: number
}

/** Something that costs requests time, and that a setting switches. */
export interface Feature {
  name: string
  /** How it is switched, for the table. */
  setting: string
  byDefault: 'on' | 'off' | 'none'
  /** The least ratio of the rates; without it, it is only shown. */
  required?: Requirement
  without: Variant
  with: Variant
}

const API_KEY = 'benchmark-key-with-more-than-128-bits-of-text'
const ALL_LOGS = ['access_log', 'ts_log', 'model_log', 'ts_metrics', 'model_metrics', 'audit_log']

const logsWithout = (...names: string[]): Variant => ({
  config: `log_files=${ALL_LOGS.filter((name) => !names.includes(name)).join(',')}`,
})

/** A server whose requests carry an API key, with these limits. */
function apiKey(limits?: object): Variant {
  const file = scratch(limits === undefined ? 'keys.json' : 'keys-with-limits.json')
  const sha256 = createHash('sha256').update(API_KEY).digest('hex')
  writeFileSync(file, JSON.stringify({ keys: [{ name: 'bench', sha256, scopes: ['inference'], limits }] }))
  return { config: `api_keys_file=${file}`, tokenOf: () => API_KEY }
}

/** All that `npm run bench:costs` measures. */
export function features(): Feature[] {
  const noMetrics = scratch('no-metrics.yaml')
  writeFileSync(noMetrics, 'ts_metrics: {}\nmodel_metrics: {}\n')
  const key = apiKey()
  return [
    {
      ...{ name: 'Tokens', setting: '`disable_token_authorization=false`', byDefault: 'on' },
      without: {},
      with: { tokens: true, tokenOf: inferenceKey },
    },
    {
      ...{ name: 'API key', setting: '`api_keys_file`', byDefault: 'off' },
      without: {},
      with: key,
    },
    {
      ...{ name: 'Limits of an API key', setting: '`limits` in the keys file', byDefault: 'off' },
      without: key,
      with: apiKey({ requestsPerSecond: 1_000_000, concurrentStreams: 1000, bytesPerSecond: 10_000_000_000 }),
    },
    {
      ...{ name: 'TLS', setting: '`https` addresses, `enable_grpc_ssl=true`', byDefault: 'off' },
      without: {},
      with: { tls: true },
    },
    {
      ...{ name: 'Access log', setting: '`log_files` with `access_log`', byDefault: 'on' },
      without: logsWithout('access_log'),
      with: {},
    },
    {
      ...{ name: 'Audit log', setting: '`log_files` with `audit_log`', byDefault: 'on' },
      without: logsWithout('audit_log'),
      with: {},
    },
    {
      ...{ name: "TorchServe's metrics", setting: '`metrics_config`', byDefault: 'on' },
      without: { config: `metrics_mode=prometheus\nmetrics_config=${noMetrics}` },
      with: { config: 'metrics_mode=prometheus' },
    },
    {
      ...{ name: 'Metric log files', setting: '`metrics_mode=log`', byDefault: 'on' },
      without: { config: 'metrics_mode=prometheus' },
      with: {},
    },
    {
      ...{ name: 'Tracing of a tenth', setting: '`OTEL_*`, sampler ratio 0.1', byDefault: 'off' },
      without: {},
      with: { traced: 0.1 },
      required: TRACED_TENTH,
    },
    {
      ...{ name: 'Tracing of all', setting: '`OTEL_*`', byDefault: 'off' },
      without: {},
      with: { traced: 1 },
    },
    {
      ...{ name: 'Ten viewers', setting: '`GET /events`, as the console reads it', byDefault: 'none' },
      without: {},
      with: { viewers: 10 },
    },
  ]
}

/** Starts a server with `echo` and `hundred`, with default settings besides. */
export async function startVariant(name: string, variant: Variant): Promise<Target> {
  const { tokenOf, traced, viewers = 0, ...options } = variant
  const command = await oursCommand({ ...options, models: [ECHO, HUNDRED], settings: 'default' })
  const headersOf = (): Record<string, string> =>
    tokenOf === undefined ? {} : { authorization: `Bearer ${tokenOf(command)}` }
  const collector = traced === undefined ? undefined : await startCollector(traced)
  const env = { ...command.env, ...collector?.env }
  const target = await startWith({ ...command, env }, [ECHO, HUNDRED], headersOf)
  const leave = await watch(command.managementOrigin, viewers)
  const stop = async (): Promise<void> => {
    leave()
    await target.stop()
    collector?.stop()
  }
  return { ...target, name, stop }
}

function inferenceKey({ cwd }: OursCommand): string {
  const keys = JSON.parse(readFileSync(join(cwd, 'key_file.json'), 'utf8')) as {
    inference: { key: string }
  }
  return keys.inference.key
}

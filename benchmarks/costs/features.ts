import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ECHO } from '../ceilings/workload.ts'
import { scratch } from '../scratch.ts'
import { oursCommand, startWith, type OursCommand, type OursOptions } from '../targets/ours.ts'
import type { Target } from '../targets/target.ts'

/** How a server is started and asked, apart from the default settings without tokens. */
interface Variant extends OursOptions {
  /** The token that requests carry. */
  tokenOf?: (command: OursCommand) => string
}

/** Something that costs requests time, and that a setting switches. */
export interface Feature {
  name: string
  /** How it is switched, for the table. */
  setting: string
  byDefault: 'on' | 'off'
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
      ...{ name: 'Sandbox', setting: '`sandbox=default`', byDefault: 'on' },
      without: { config: 'sandbox=off' },
      with: {},
    },
    {
      ...{ name: 'Strict sandbox', setting: '`sandbox=strict`', byDefault: 'off' },
      without: {},
      with: { config: 'sandbox=strict' },
    },
  ]
}

/** Starts a server with `echo`, with default settings besides. */
export async function startVariant(name: string, { tokenOf, ...options }: Variant): Promise<Target> {
  const command = await oursCommand({ ...options, models: [ECHO], settings: 'default' })
  const headersOf = (): Record<string, string> =>
    tokenOf === undefined ? {} : { authorization: `Bearer ${tokenOf(command)}` }
  return { ...(await startWith(command, [ECHO], headersOf)), name }
}

function inferenceKey({ cwd }: OursCommand): string {
  const keys = JSON.parse(readFileSync(join(cwd, 'key_file.json'), 'utf8')) as {
    inference: { key: string }
  }
  return keys.inference.key
}

import { processors } from '../../common/processors.ts'
import type { Model } from '../models/model.ts'
import { setOwn } from '../../common/json.ts'
import type { Settings } from '../config/settings.ts'

/** What numeric libraries read when they are loaded; the last is for handlers that ship with the server. */
const VARIABLES = [
  'OMP_NUM_THREADS',
  'MKL_NUM_THREADS',
  'OPENBLAS_NUM_THREADS',
  'BLIS_NUM_THREADS',
  'NUMEXPR_NUM_THREADS',
  'RAYON_NUM_THREADS',
  'VECLIB_MAXIMUM_THREADS',
  'VIPS_CONCURRENCY',
  'TORCHSERVE_TS_THREADS',
] as const

/** From this number of cores on, one is left for the server. */
const ENOUGH_CORES = 4

/** What of a model its share depends on. */
type Sharing = Pick<Model, 'minWorkers' | 'maxWorkers'> & {
  readonly settings: Pick<Model['settings'], 'threads' | 'deviceType' | 'parallelLevel' | 'scaling'>
  readonly workers: Pick<Model['workers'], 'wanted'>
}

/**
 * The threads with which each process of a model's worker computes. Without a share each would have one for
 * every core, and they would wait for each other.
 * @param models all models of the server
 */
export function threadsOf(
  model: Sharing,
  models: readonly Sharing[],
  env: NodeJS.ProcessEnv = process.env,
  cores: number = processors(),
): number {
  const { threads, deviceType } = model.settings
  return threads ?? wanted(env['OMP_NUM_THREADS']) ?? (deviceType === 'gpu' ? 1 : share(model, models, cores))
}

/** A worker's variables, with its threads. Those that are there stay unless the model has its own number. */
export function withThreads(
  env: Readonly<Record<string, string>>,
  threads: number,
  { settings }: Model,
): Record<string, string> {
  const names = VARIABLES.filter((name) => settings.threads !== undefined || wanted(env[name]) === undefined)
  return { ...env, ...Object.fromEntries(names.map((name) => [name, String(threads)])) }
}

function share(model: Sharing, models: readonly Sharing[], cores: number): number {
  const others = models.filter((each) => each !== model && !isAtZero(each))
  const processes = [model, ...others].reduce((sum, each) => sum + processesOf(each), 0)
  const reserved = cores >= ENOUGH_CORES ? 1 : 0
  return Math.max(1, Math.floor((cores - reserved) / processes))
}

function processesOf({ minWorkers, maxWorkers, settings: { parallelLevel, scaling } }: Sharing): number {
  return Math.max(1, scaling === undefined ? minWorkers : maxWorkers) * Math.max(1, parallelLevel)
}

function isAtZero({ minWorkers, workers }: Sharing): boolean {
  return minWorkers === 0 && workers.wanted === 0
}

/** OpenMP allows a list, for each level of nesting. */
function wanted(text: string | undefined): number | undefined {
  const number = Number(/^\s*(\d+)\s*(,|$)/.exec(text ?? '')?.[1])
  return number > 0 ? number : undefined
}

/** Variables of the server with a secret of its own, such as TS_KEYSTORE_PASS. */
const OWN_SECRET = /^TS_(.*_)?(PASS|PASSWORD|SECRET)$/i

/**
 * The server's variables for processes that run a model's code, as in TorchServe: without those that
 * `blacklist_env_vars` matches, and without those that contain a password of the server.
 */
export function inheritedEnv({
  blacklistEnvVars,
  keystorePass,
}: Pick<Settings, 'blacklistEnvVars' | 'keystorePass'>): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value === undefined || blacklistEnvVars?.test(name) === true) continue
    if (OWN_SECRET.test(name) || value === keystorePass) continue
    setOwn(env, name, value)
  }
  return env
}

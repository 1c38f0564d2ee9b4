import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { buildSettings, type LoadedSettings } from './build-settings.ts'
import { collectEntries } from './collect-entries.ts'
import { KEYS } from './keys.ts'
import { readLogConfig } from './log-config.ts'
import { readMlserverSettings } from './mlserver-settings.ts'
import { parseProperties, type Entry, type Environment } from './properties.ts'
import type { Settings } from './settings.ts'
import { listSnapshots, snapshotFolder } from './snapshot-store.ts'

/** Command-line flags that set keys. */
export interface ConfigFlags {
  tsConfig?: string
  modelStore?: string
  workflowStore?: string
  /** Each `[name=]location` or `all`. */
  models?: readonly string[]
  logConfig?: string
  cppLogConfig?: string
  pluginsPath?: string
  disableTokenAuth?: boolean
  /** False: snapshots are neither read nor written (--ncs). Default true. */
  configSnapshots?: boolean
  enableModelApi?: boolean
}

/**
 * Reads the configuration. The file is the first that exists of: variable TS_CONFIG_FILE, `--ts-config`, the
 * newest snapshot, `config.properties` in the working directory. Flags override the file. With
 * `enable_envvars_config=true`, TS_<KEY> variables override both.
 * @throws ServeError CONFIG, always one line
 */
export async function loadSettings(
  flags: ConfigFlags = {},
  env: Environment = process.env,
): Promise<LoadedSettings> {
  const warnings: string[] = []
  const logEntries = flags.logConfig === undefined ? [] : await readLogConfig(flags.logConfig, warnings)
  const { entries: file, isLastSnapshot } = await readConfigFile(flags, env, logEntries, warnings)
  const sources = { file, flags: [...flagEntries(flags), ...logEntries], env }
  const store = collectEntries(sources, []).get(KEYS.modelStore.name)?.text
  const mlserver = await readMlserverSettings(store, env)
  warnings.push(...mlserver.warnings)
  const loaded = buildSettings({ ...sources, mlserver: mlserver.entries })
  if (flags.models !== undefined && loaded.settings.modelSnapshot !== undefined) {
    warnings.push(`--models is ignored: the models come from ${loaded.origins.modelSnapshot}`)
  }
  return { ...loaded, isLastSnapshot, warnings: [...warnings, ...loaded.warnings] }
}

/**
 * Checks that the model store, and the workflow store if one is set, are folders.
 * @throws ServeError CONFIG when the model store is missing or either is not a folder
 */
export async function checkStores({ modelStore, workflowStore }: Settings): Promise<void> {
  if (modelStore === undefined) {
    throw new ServeError(
      'CONFIG',
      'Missing mandatory parameter --model-store (or model_store in the config file)',
    )
  }
  await checkFolder('--model-store', modelStore)
  if (workflowStore !== undefined) await checkFolder('--workflow-store', workflowStore)
}

async function checkFolder(flag: string, path: string): Promise<void> {
  const isFolder = await stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  )
  if (!isFolder) throw new ServeError('CONFIG', `${flag} directory not found: ${path}`)
}

async function readConfigFile(
  { tsConfig, configSnapshots }: ConfigFlags,
  env: Environment,
  logEntries: readonly Entry[],
  warnings: string[],
): Promise<{ entries: Entry[]; isLastSnapshot?: boolean }> {
  const fromEnv = env['TS_CONFIG_FILE']
  if (fromEnv !== undefined && fromEnv !== '')
    return { entries: await readEntries(fromEnv, 'TS_CONFIG_FILE', env) }
  if (tsConfig !== undefined) return { entries: await readEntries(tsConfig, '--ts-config', env) }
  const snapshot = configSnapshots === false ? undefined : await newestSnapshot(env, logEntries)
  if (snapshot === undefined) return { entries: await readEntries('config.properties', undefined, env) }
  warnings.push(
    `Settings and models come from the snapshot ${snapshot}${shadowed()}; start with --ncs to ignore it`,
  )
  // No `env`: the snapshot holds values whose $$NAME$$ was already replaced.
  return { entries: await readEntries(snapshot, 'the last snapshot', undefined), isLastSnapshot: true }
}

function shadowed(): string {
  return existsSync('config.properties') ? ', not from config.properties' : ''
}

async function newestSnapshot(env: Environment, logEntries: readonly Entry[]): Promise<string | undefined> {
  const fromFlag = logEntries.find(({ name }) => name === KEYS.logLocation.name)?.text
  const location = [fromFlag, env['LOG_LOCATION']?.trim()].find((text) => text !== undefined && text !== '')
  const folder = snapshotFolder(location ?? KEYS.logLocation.fallback!)
  const newest = (await listSnapshots(folder)).at(-1)
  return newest === undefined ? undefined : join(folder, newest)
}

/** `named`: the flag or variable that named the file; undefined: the file is optional. */
async function readEntries(
  path: string,
  named: string | undefined,
  env: Environment | undefined,
): Promise<Entry[]> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if (named === undefined && (cause as NodeJS.ErrnoException).code === 'ENOENT') return []
    const who = named === undefined ? '' : ` (from ${named})`
    const why = (cause as Error).message
    throw new ServeError('CONFIG', `The config file ${path}${who} cannot be read: ${why}`, { cause })
  }
  return parseProperties(text, path, env)
}

function flagEntries(flags: ConfigFlags): Entry[] {
  const given: [name: string, text: string | undefined, flag: string][] = [
    ['model_store', flags.modelStore, '--model-store'],
    ['workflow_store', flags.workflowStore, '--workflow-store'],
    ['load_models', flags.models?.join(','), '--models'],
    ['cpp_log_config', flags.cppLogConfig, '--cpp-log-config'],
    ['plugins_path', flags.pluginsPath, '--plugins-path'],
    ['disable_token_authorization', flags.disableTokenAuth ? 'true' : undefined, '--disable-token-auth'],
    ['enable_model_api', flags.enableModelApi ? 'true' : undefined, '--enable-model-api'],
  ]
  return given.flatMap(([name, text, origin]) => (text === undefined ? [] : [{ name, text, origin }]))
}

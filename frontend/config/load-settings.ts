import { readFile, stat } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { buildSettings, type LoadedSettings } from './build-settings.ts'
import { collectEntries } from './collect-entries.ts'
import { KEYS } from './keys.ts'
import {
  changesSince,
  readLastSnapshot,
  settingsToTake,
  takenSettings,
  withAdvice,
  type LastSnapshot,
} from './last-snapshot.ts'
import { readLogConfig } from './log-config.ts'
import { readMlserverSettings } from './mlserver-settings.ts'
import { chooseModels, type ModelSource } from './model-source.ts'
import { parseProperties, type Entry, type Environment } from './properties.ts'
import type { Settings } from './settings.ts'
import { snapshotFolder } from './snapshot-store.ts'

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

/** What a start is made of. */
export interface StartSettings extends LoadedSettings {
  readonly modelSource: ModelSource
}

/**
 * Reads the configuration. The file is the first that exists of: variable TS_CONFIG_FILE, `--ts-config`,
 * `config.properties` in the working directory. Flags override the file. With `enable_envvars_config=true`,
 * TS_<KEY> variables override both. A start that names no file also finds the newest snapshot: it takes the
 * models from it (model-source.ts), and the settings only without a config.properties.
 * @throws ServeError CONFIG, always one line
 */
export async function loadSettings(
  flags: ConfigFlags = {},
  env: Environment = process.env,
): Promise<StartSettings> {
  const warnings: string[] = []
  const logEntries = flags.logConfig === undefined ? [] : await readLogConfig(flags.logConfig, warnings)
  const file = await readConfigFile(flags, env)
  const last = await lastSnapshot(flags, env, logEntries)
  const base = file === undefined && last !== undefined ? settingsToTake(last, warnings) : []
  const given = { base, file: file ?? [], flags: [...flagEntries(flags), ...logEntries], env }
  return withAdvice(last?.path, async () => {
    const store = collectEntries(given, []).get(KEYS.modelStore.name)?.text
    const mlserver = await readMlserverSettings(store, env)
    const sources = { ...given, mlserver: mlserver.entries }
    const modelSource = chooseModels(collectEntries(sources, []), last, flags.models !== undefined)
    const loaded = buildSettings({ ...sources, models: modelSource.snapshot })
    const line =
      last && (file ? changesSince(last, loaded.entries, file) : takenSettings(last, loaded.entries))
    warnings.push(...(line === undefined ? [] : [line]), ...mlserver.warnings)
    return { ...loaded, modelSource, warnings: [...warnings, ...loaded.warnings] }
  })
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

/** The variable or flag that names the configuration file, and the file. */
function namedFile({ tsConfig }: ConfigFlags, env: Environment): { by: string; path: string } | undefined {
  const fromEnv = env['TS_CONFIG_FILE']
  if (fromEnv !== undefined && fromEnv !== '') return { by: 'TS_CONFIG_FILE', path: fromEnv }
  return tsConfig === undefined ? undefined : { by: '--ts-config', path: tsConfig }
}

/** Undefined: no file is named, and there is no config.properties. */
async function readConfigFile(flags: ConfigFlags, env: Environment): Promise<Entry[] | undefined> {
  const named = namedFile(flags, env)
  return readEntries(named?.path ?? 'config.properties', named?.by, env)
}

/** As in TorchServe, a start that names its configuration file reads no other. */
async function lastSnapshot(
  flags: ConfigFlags,
  env: Environment,
  logEntries: readonly Entry[],
): Promise<LastSnapshot | undefined> {
  if (flags.configSnapshots === false || namedFile(flags, env) !== undefined) return undefined
  const fromFlag = logEntries.find(({ name }) => name === KEYS.logLocation.name)?.text
  const location = [fromFlag, env['LOG_LOCATION']?.trim()].find((text) => text !== undefined && text !== '')
  return readLastSnapshot(snapshotFolder(location ?? KEYS.logLocation.fallback!))
}

/** `named`: the flag or variable that named the file; undefined: the file is optional. */
async function readEntries(
  path: string,
  named: string | undefined,
  env: Environment,
): Promise<Entry[] | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if (named === undefined && (cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
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

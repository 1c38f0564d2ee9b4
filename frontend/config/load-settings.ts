import { readFile, stat } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { makeFolder, pathExists } from '../../common/files.ts'
import { buildSettings, type LoadedSettings } from './build-settings.ts'
import { collectEntries } from './collect-entries.ts'
import { KEYS } from './keys.ts'
import {
  changesSince,
  readLastSnapshot,
  refuseWrapper,
  settingsToTake,
  takenSettings,
  withAdvice,
  type LastSnapshot,
  chooseModels,
  type ModelSource,
} from './last-snapshot.ts'
import { log4jFile, readLogConfig } from './log-config.ts'
import { isAgentsStore, readMlserverSettings } from './mlserver-settings.ts'
import { parseProperties, type Entry, type Environment } from './properties.ts'
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
  /** Keys that a command sets by itself; they override the file. */
  entries?: readonly Entry[]
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
  const file = await readConfigFile(flags, env)
  const logEntries = await logSettings(flags, file ?? [], env, warnings)
  const last = await lastSnapshot(flags, env, logEntries)
  const base = file === undefined && last !== undefined ? settingsToTake(last, warnings) : []
  const given = { base, file: file ?? [], flags: [...flagEntries(flags), ...logEntries], env }
  return withAdvice(last?.path, async () => {
    const store = collectEntries(given, []).get(KEYS.modelStore.name)?.text
    const mlserver = await readMlserverSettings(store, env)
    const sources = { ...given, mlserver: mlserver.entries }
    const modelSource = chooseModels(collectEntries(sources, []), last, flags.models !== undefined)
    const loaded = buildSettings({ ...sources, models: modelSource.snapshot })
    if (last !== undefined) refuseWrapper(last, loaded)
    const line =
      last && (file ? changesSince(last, loaded.entries, file) : takenSettings(last, loaded.entries))
    warnings.push(...(line === undefined ? [] : [line]), ...mlserver.warnings)
    return { ...loaded, modelSource, warnings: [...warnings, ...loaded.warnings] }
  })
}

/**
 * Checks that the model store, and the workflow store if one is set, are folders. The store of Seldon Core's
 * agent may still be missing: a fresh volume.
 * @throws ServeError CONFIG when the model store is missing or either is not a folder
 */
export async function checkStores({
  settings: { modelStore, workflowStore },
  entries,
}: Pick<LoadedSettings, 'settings' | 'entries'>): Promise<void> {
  if (modelStore === undefined) {
    throw new ServeError(
      'CONFIG',
      'Missing mandatory parameter --model-store (or model_store in the config file)',
    )
  }
  if (!isAgentsStore(entries.get(KEYS.modelStore.name)) || (await pathExists(modelStore)))
    await checkFolder('--model-store', modelStore)
  if (workflowStore !== undefined) await checkFolder('--workflow-store', workflowStore)
}

/**
 * Makes the model store of Seldon Core's agent if the server starts first.
 * @returns what was done, in one line; undefined: nothing
 */
export async function makeAgentsStore({
  settings: { modelStore },
  entries,
}: Pick<LoadedSettings, 'settings' | 'entries'>): Promise<string | undefined> {
  if (modelStore === undefined || !isAgentsStore(entries.get(KEYS.modelStore.name))) return undefined
  if (await pathExists(modelStore)) return undefined
  try {
    await makeFolder(modelStore)
    return `Made the model store ${modelStore}, which did not exist`
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    return `The model store ${modelStore} does not exist yet, and cannot be made here (${code}): it is read when a model is loaded`
  }
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

/** As in TorchServe, the flag comes before what `vmargs` names, which need not be there. */
async function logSettings(
  { logConfig }: ConfigFlags,
  file: readonly Entry[],
  env: Environment,
  warnings: string[],
): Promise<Entry[]> {
  if (logConfig !== undefined) return readLogConfig(logConfig, warnings, env)
  const named = log4jFile(file)
  if (named === undefined) return []
  return readLogConfig(named.text, warnings, env, `vmargs, ${named.origin}`).catch((error: unknown) => {
    warnings.push(ServeError.from(error).message)
    return []
  })
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
    // For a file of an optional ConfigMap that does not exist Kubernetes makes a folder.
    if (named === undefined && ['ENOENT', 'EISDIR'].includes((cause as NodeJS.ErrnoException).code!))
      return undefined
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
  const own = given.flatMap(([name, text, origin]) => (text === undefined ? [] : [{ name, text, origin }]))
  return [...own, ...(flags.entries ?? [])]
}

import { isAbsolute } from 'node:path'
import { CREDENTIAL_HEADERS } from '../../common/credential-headers.ts'
import { fitsName } from '../config/inherited-env.ts'
import type { SandboxMode, Settings } from '../config/settings.ts'
import { ConfigReader } from './config-reader.ts'

/** What the workers of one model may do (docs/security.md). */
export interface SandboxSettings {
  readonly mode: SandboxMode
  /** Variables of the server's environment besides the usual ones; `*`: all. */
  readonly env: readonly string[]
  /** Absolute paths besides model, scratch folder and runtime. */
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly network: boolean
  /** Bytes of each process; undefined: no limit. */
  readonly memory: number | undefined
  /** Processes and threads of a worker; undefined: no limit. */
  readonly processes: number | undefined
  /** Open files of each process; undefined: the server's limit. */
  readonly openFiles: number | undefined
  /** Headers with credentials that the handler gets, in lower case. */
  readonly headers: ReadonlySet<string>
}

const MODES = ['off', 'default', 'strict'] as const
const NAME = /^[A-Za-z0-9_]{1,256}$/

/**
 * The sandbox of a model: the server's, tightened by `sandbox` of its model-config.yaml, a mode or a map.
 * With `sandbox_by_model=true` the file may loosen it too.
 * @param reader of the whole file; gets the warnings
 */
export function sandboxSettings(reader: ConfigReader, settings: Settings): SandboxSettings {
  const file = sectionOf(reader)
  const may = settings.sandboxByModel
  const loosened = (key: string): void => {
    file.warnings.push(`${key} has no effect here: sandbox_by_model must be true to loosen the sandbox`)
  }
  const mode = modeOf(file, settings, loosened)
  const network = networkOf(file, mode, settings, loosened)
  const paths = (key: string): string[] => {
    const all = file.texts(key) ?? []
    const asked = all.filter((path) => isAbsolute(path))
    if (asked.length < all.length) file.warnings.push(`${key}: a path must be absolute to have an effect`)
    if (asked.length > 0 && !may) loosened(key)
    return may ? asked : []
  }
  const smaller = (key: string, min: number, limit: number | undefined): number | undefined => {
    const asked = file.integer(key, min)
    if (asked === undefined || may || limit === undefined || asked <= limit) return asked ?? limit
    loosened(key)
    return limit
  }
  const found: SandboxSettings = {
    mode,
    env: mode === 'off' ? ['*'] : [...settings.workerEnv, ...envOf(file, settings)],
    read: [...settings.sandboxRead, ...paths('read')],
    write: [...settings.sandboxWrite, ...paths('write')],
    network,
    memory: smaller('memory', 1, settings.workerMemory),
    processes: smaller('processes', 1, settings.workerProcesses),
    openFiles: smaller('openFiles', 32, settings.workerOpenFiles),
    headers:
      mode === 'off' ? CREDENTIAL_HEADERS : new Set(file.texts('headers')?.map((name) => name.toLowerCase())),
  }
  if (file !== reader) reader.warnings.push(...file.warnings.map((warning) => `sandbox: ${warning}`))
  return found
}

/** `sandbox: strict` is short for `sandbox: {mode: strict}`. */
function sectionOf(reader: ConfigReader): ConfigReader {
  const isWord = reader.isText('sandbox')
  if (!isWord) return reader.section('sandbox') ?? new ConfigReader({})
  return new ConfigReader({ mode: reader.word('sandbox', MODES) })
}

function modeOf(file: ConfigReader, settings: Settings, loosened: (key: string) => void): SandboxMode {
  const asked = file.word('mode', MODES) ?? settings.sandbox
  if (MODES.indexOf(asked) >= MODES.indexOf(settings.sandbox) || settings.sandboxByModel) return asked
  loosened('mode')
  return settings.sandbox
}

/** A model in strict mode may ask for the network if the server's own mode would have given it. */
function networkOf(
  file: ConfigReader,
  mode: SandboxMode,
  settings: Settings,
  loosened: (key: string) => void,
): boolean {
  if (mode === 'off') return true
  const asked = file.boolean('network')
  const allowed = settings.workerNetwork ?? settings.sandbox !== 'strict'
  if (asked === true && !allowed && !settings.sandboxByModel) loosened('network')
  if (asked !== undefined) return asked && (allowed || settings.sandboxByModel)
  return settings.workerNetwork ?? mode !== 'strict'
}

/** The variables that the file asks for and that `model_env` allows. */
function envOf(file: ConfigReader, { modelEnv, sandboxByModel }: Settings): string[] {
  const asked = file.texts('env') ?? []
  const given = asked.filter((name) => NAME.test(name) && (sandboxByModel || fitsName(name, modelEnv)))
  const refused = asked.filter((name) => !given.includes(name))
  if (refused.length > 0)
    file.warnings.push(`env: the worker does not get ${refused.join(', ')}: model_env must name it`)
  return given
}

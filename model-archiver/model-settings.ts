import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ServeError } from '../common/errors.ts'
import { isObject, parseJson, setOwn } from '../common/json.ts'
import { parseArchiveJson, readSmallFile } from './manifest.ts'
import { findScript } from './handler-entry.ts'
import { ARCHIVE_SUFFIX } from './model-names.ts'
import { statSync } from 'node:fs'

/** MLServer's model settings (MLServer's documentation, "Model settings"), in the model's folder. */
export const MODEL_SETTINGS = 'model-settings.json'

const MAX_BYTES = 1024 * 1024

/** Its content, translated for this server. */
export interface ModelSettingsFile {
  /** Absent: the folder's name. */
  readonly name: string | undefined
  /** parameters.version */
  readonly version: string | undefined
  /** As in the file; see `implementationHandler`. */
  readonly implementation: string | undefined
  /** As keys of model-config.yaml, which itself overrides them. */
  readonly config: Record<string, unknown>
}

/**
 * Reads the model-settings.json of a folder; undefined: there is none. MLSERVER_MODEL_<KEY> variables fill in
 * what the file omits. In the folder that they name themselves they replace the file (environment-model.ts).
 * @param location path of the model, if its files are in another folder
 * @throws ServeError INVALID_MODEL
 */
export async function readModelSettings(
  folder: string,
  env: NodeJS.ProcessEnv = process.env,
  location = folder,
): Promise<ModelSettingsFile | undefined> {
  const text = await readSmallFile(join(folder, MODEL_SETTINGS), MAX_BYTES)
  if (text === undefined && environmentFolder(env) !== resolve(location)) return undefined
  const variables = modelVariables(env)
  const given = text === undefined ? {} : parseObject(text)
  const file = { ...variables.file, ...said(given) }
  const parameters = {
    ...variables.parameters,
    ...said(objectOf('parameters', given['parameters'])),
  }
  return {
    name: textOf('name', file['name']),
    version: textOf('parameters.version', parameters['version']),
    implementation: textOf('implementation', file['implementation']),
    config: configOf(folder, file, parameters),
  }
}

/**
 * The name of the model at `location`: the file's `name`, else the folder's. A folder named like the version
 * takes the name of its parent.
 */
export function settingsName(location: string, { name, version }: ModelSettingsFile): string {
  const own = basename(location).replace(ARCHIVE_SUFFIX, '')
  return name ?? (own === version ? basename(dirname(location)) : own)
}

/** Drops null and empty strings, which count as absent. */
function said(fields: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== ''))
}

/**
 * The handler that `implementation` names: a file as in a manifest (`model.ts:Story`), or module and class as
 * in Python (`model.Story`).
 */
export function implementationHandler(folder: string, implementation: string): string {
  const dot = implementation.lastIndexOf('.')
  if (dot <= 0 || implementation.includes(':') || findScript(folder, implementation) !== undefined)
    return implementation
  const module = implementation.slice(0, dot).replaceAll('.', '/')
  return findScript(folder, module) === undefined
    ? implementation
    : `${module}:${implementation.slice(dot + 1)}`
}

function configOf(
  folder: string,
  file: Record<string, unknown>,
  parameters: Record<string, unknown>,
): Record<string, unknown> {
  const { platform, versions, inputs, outputs, max_batch_size: size, max_batch_time: time } = file
  const uri = textOf('parameters.uri', parameters['uri'])
  return {
    ...batching(numberOf('max_batch_size', size), numberOf('max_batch_time', time)),
    openInference: { platform, versions, inputs, outputs },
    modelSettings: { ...file, parameters: { ...parameters, uri: uriPath(folder, uri) } },
  }
}

/** Both must be set, as in MLServer. */
function batching(size: number | undefined, seconds: number | undefined): Record<string, number> {
  if (size === undefined || seconds === undefined || size <= 1 || seconds <= 0) return {}
  return { batchSize: Math.floor(size), maxBatchDelay: Math.max(1, Math.round(seconds * 1000)) }
}

/** Path of the weights, from an absolute path, a path relative to the folder, or a file URL. */
function uriPath(folder: string, uri: string | undefined): string {
  if (uri === undefined) return folder
  if (uri.startsWith('file:')) {
    try {
      return fileURLToPath(uri)
    } catch {
      throw invalid(`parameters.uri must be a file URL of this machine, found ${uri.slice(0, 200)}`)
    }
  }
  return isAbsolute(uri) || /^[a-z][a-z0-9+.-]*:/i.test(uri) ? uri : resolve(folder, uri)
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = parseArchiveJson(text)
  } catch (error) {
    throw invalid(`it must be valid JSON: ${(error as Error).message}`)
  }
  return objectOf('it', value)
}

function objectOf(what: string, value: unknown): Record<string, unknown> {
  if (value === undefined || value === null) return {}
  if (isObject(value)) return value
  throw invalid(`${what} must be an object`)
}

function textOf(what: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined
  if (typeof value === 'string') return value
  throw invalid(`${what} must be a string`)
}

function numberOf(what: string, value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined
  if (typeof value === 'number' && Number.isFinite(value)) return value
  throw invalid(`${what} must be a number`)
}

function invalid(why: string): ServeError {
  const publicCause = 'its settings are not valid'
  return new ServeError('INVALID_MODEL', `${MODEL_SETTINGS} cannot be used: ${why}.`, { publicCause })
}

type Environment = Readonly<Record<string, string | undefined>>

/** Keys of model-settings.json that variables can set, and those of its `parameters`. */
const KEYS = [
  ...['name', 'implementation', 'platform', 'versions', 'inputs', 'outputs'],
  ...['max_batch_size', 'max_batch_time'],
]
const PARAMETERS = ['uri', 'version', 'content_type', 'format', 'extra']

/**
 * Values of MLSERVER_MODEL_<KEY> variables, in any letter case, as in MLServer's documentation ("Model
 * settings"). Lists, objects and numbers are JSON.
 */
function modelVariables(env: Environment): {
  file: Record<string, unknown>
  parameters: Record<string, unknown>
} {
  const file: Record<string, unknown> = {}
  const parameters: Record<string, unknown> = {}
  for (const [variable, text = ''] of Object.entries(env)) {
    const key = /^MLSERVER_MODEL_(.+)$/i.exec(variable)?.[1]?.toLowerCase()
    if (key === undefined || text.trim() === '') continue
    if (KEYS.includes(key)) setOwn(file, key, valueOf(key, text.trim()))
    else if (PARAMETERS.includes(key)) setOwn(parameters, key, valueOf(key, text.trim()))
  }
  return { file, parameters }
}

/**
 * Folder of the model that only variables describe: they name an implementation, and a local URI (folder, or
 * file in it) or MLSERVER_MODELS_DIR. Undefined: no such model.
 */
export function environmentFolder(env: Environment): string | undefined {
  const { file, parameters } = modelVariables(env)
  if (file['implementation'] === undefined) return undefined
  const uri = localPath(parameters['uri']) ?? env['MLSERVER_MODELS_DIR']?.trim()
  if (uri === undefined || uri === '') return undefined
  const stats = statSync(uri, { throwIfNoEntry: false })
  if (stats === undefined) return undefined
  return resolve(stats.isDirectory() ? uri : dirname(uri))
}

const TEXTS: ReadonlySet<string> = new Set(['name', 'implementation', 'platform', 'uri', 'version'])

function valueOf(key: string, text: string): unknown {
  if (TEXTS.has(key)) return text
  const value = parseJson(text)
  return value === undefined ? text : value
}

function localPath(uri: unknown): string | undefined {
  if (typeof uri !== 'string') return undefined
  if (!uri.startsWith('file:')) return /^[a-z][a-z0-9+.-]+:/i.test(uri) ? undefined : uri
  try {
    return fileURLToPath(uri)
  } catch {
    return undefined
  }
}

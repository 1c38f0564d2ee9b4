import { statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseJson, setOwn } from '../common/json.ts'

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
export function modelVariables(env: Environment): {
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

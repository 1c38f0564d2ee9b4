import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ServeError } from '../common/errors.ts'
import type { Manifest } from './manifest-schema.ts'
import { modelFolder, inside } from './handler-entry.ts'
import { DEFAULT_UNPACK_LIMITS } from './unpack-budget.ts'
import { checkJsonBounds } from '../common/json-bounds.ts'
import { isObject } from '../common/json.ts'
import { parseYaml } from './yaml.ts'

/** Path of the manifest in an archive. */
export const MANIFEST_PATH = 'MAR-INF/MANIFEST.json'

const MAX_MANIFEST_BYTES = 1024 * 1024

/**
 * The manifest of an unpacked archive or of a folder; undefined when it has none.
 * @throws ServeError INVALID_MODEL
 */
export async function readManifest(modelDir: string): Promise<Manifest | undefined> {
  return manifestOf(await readSmallFile(join(modelDir, MANIFEST_PATH), MAX_MANIFEST_BYTES))
}

/**
 * The manifest of a model in a store, read without unpacking; undefined when it has none, and for compressed
 * tar archives, which allow no random access.
 * @param path of a folder or an archive
 * @param maxFiles maximum entries of an archive; one with more counts as one without a manifest
 * @throws ServeError INVALID_MODEL; errors of yauzl and of the file system
 */
export async function storedManifest(
  path: string,
  maxFiles: number = DEFAULT_UNPACK_LIMITS.maxFiles,
): Promise<Manifest | undefined> {
  if ((await stat(path)).isDirectory()) return readManifest(await modelFolder(path))
  if (!/\.(mar|model)$/i.test(path)) return undefined
  const { readZipEntry } = await import('./unpack-zip.ts')
  return manifestOf(await readZipEntry(path, MANIFEST_PATH, { maxFiles, maxBytes: MAX_MANIFEST_BYTES }))
}

async function manifestOf(text: string | undefined): Promise<Manifest | undefined> {
  if (text === undefined) return undefined
  // Loads zod on demand: a server of plain folders starts faster without it.
  const { checkManifest } = await import('./manifest-schema.ts')
  return checkManifest(parseJson(text))
}

/** The text of a file; undefined when it does not exist. Refuses a larger file without reading it. */
export async function readSmallFile(path: string, maxBytes: number): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return undefined
  if (!stats.isFile()) throw invalid(`${basename(path)} must be a file.`)
  if (stats.size > maxBytes) throw invalid(`${basename(path)} must have at most ${maxBytes} bytes.`)
  return readFile(path, 'utf8')
}

/** A number as a version: 2.10 is not 2.1, but JSON.parse makes no difference. */
const NUMBER_AS_VERSION = /("modelVersion"\s*:\s*)(-?\d[\d.eE+-]*)/g

function parseJson(text: string): unknown {
  try {
    return parseArchiveJson(text.replace(NUMBER_AS_VERSION, '$1"$2"'))
  } catch (error) {
    throw invalid(`Manifest file is not valid JSON: ${(error as Error).message}`)
  }
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_MODEL', message, { publicCause: 'its manifest is not valid' })
}

/** Elements that a manifest or another JSON file of an archive may have, as checkJsonBounds counts them. */
const MAX_ELEMENTS = 20_000

/** Parses JSON that strangers may have written. @throws Error for text that is no JSON, or too much of it */
export function parseArchiveJson(text: string): unknown {
  checkJsonBounds(Buffer.from(text), MAX_ELEMENTS)
  return JSON.parse(text) as unknown
}

/** Default name of the config file. */
const DEFAULT_CONFIG_FILE = 'model-config.yaml'

const MAX_CONFIG_BYTES = 1024 * 1024

/**
 * The content of a model's YAML file, TorchServe's model-config.yaml; `{}` when there is none.
 * @param configFile the manifest's name for it; absent: model-config.yaml, which may be missing
 * @throws ServeError INVALID_MODEL when a named file is missing, or the file is not a mapping
 */
export async function readModelConfig(
  modelDir: string,
  configFile?: string,
): Promise<Record<string, unknown>> {
  const name = configFile ?? DEFAULT_CONFIG_FILE
  const path = inside(modelDir, name)
  if (path === undefined) throw invalidConfig(name, 'it must be inside the model')
  const text = await readSmallFile(path, MAX_CONFIG_BYTES)
  if (text === undefined && configFile === undefined) return {}
  if (text === undefined) throw invalidConfig(name, 'the file does not exist')
  return mapping(name, text)
}

async function mapping(name: string, text: string): Promise<Record<string, unknown>> {
  let value: unknown
  try {
    value = await parseYaml(text)
  } catch (error) {
    throw invalidConfig(name, (error as Error).message.split('\n')[0]!)
  }
  if (value === null || value === undefined) return {}
  if (isObject(value)) return value
  throw invalidConfig(name, 'it must be a map')
}

function invalidConfig(name: string, reason: string): ServeError {
  const publicCause = 'its settings are not valid'
  return new ServeError('INVALID_MODEL', `Model config file ${name} cannot be used: ${reason}.`, {
    publicCause,
  })
}

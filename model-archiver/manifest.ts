import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ServeError } from '../protocol/errors.ts'
import type { Manifest } from './manifest-schema.ts'

/** Where the manifest stands in an archive. */
export const MANIFEST_PATH = 'MAR-INF/MANIFEST.json'

const MAX_MANIFEST_BYTES = 1024 * 1024

/**
 * The manifest of an unpacked archive or of a folder; undefined when it has none.
 * @throws ServeError INVALID_MODEL
 */
export async function readManifest(modelDir: string): Promise<Manifest | undefined> {
  const text = await readSmallFile(join(modelDir, MANIFEST_PATH), MAX_MANIFEST_BYTES)
  if (text === undefined) return undefined
  // Loaded when the first manifest comes: a server of plain folders starts faster without zod.
  const { checkManifest } = await import('./manifest-schema.ts')
  return checkManifest(parseJson(text))
}

/** The whole text of a file; undefined when there is no such file. A file over the limit is refused unread. */
export async function readSmallFile(path: string, maxBytes: number): Promise<string | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats === undefined) return undefined
  if (!stats.isFile()) throw invalid(`${basename(path)} is not a file.`)
  if (stats.size > maxBytes) throw invalid(`${basename(path)} is larger than ${maxBytes} bytes.`)
  return readFile(path, 'utf8')
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw invalid(`Manifest file is not valid JSON: ${(error as Error).message}`)
  }
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_MODEL', message)
}

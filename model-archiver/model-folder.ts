import { existsSync, readdirSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { GGUF_HANDLER } from './builtin-handlers.ts'
import { findScript } from './handler-entry.ts'

/** What a folder lacks that is no model. */
export const NO_HANDLER =
  'it has no handler.ts (or .js, .mjs, .cjs, .py), .gguf file, model-settings.json or MAR-INF/MANIFEST.json'

/** The folder, or its only subfolder if it contains nothing else, as in SageMaker's model archives. */
export async function modelFolder(folder: string): Promise<string> {
  const [only, ...others] = await readdir(folder, { withFileTypes: true })
  const wrapped = only?.isDirectory() === true && others.length === 0 && only.name !== 'MAR-INF'
  return wrapped ? join(folder, only.name) : folder
}

/**
 * Handler of a model that names none: `handler.` with a script's extension, or `handler.py`; without these,
 * the built-in one of a .gguf file.
 */
export function conventionalHandler(modelDir: string): string | undefined {
  const script = findScript(modelDir, 'handler')
  if (script !== undefined) return relative(modelDir, script)
  if (existsSync(join(modelDir, 'handler.py'))) return 'handler.py'
  return readdirSync(modelDir).some((name) => name.endsWith('.gguf')) ? GGUF_HANDLER : undefined
}

/** The path of a file of this name, or with this end of its path, in any folder of the model. */
export function fileBelow(modelDir: string, end: string): string | undefined {
  const paths = readdirSync(modelDir, { recursive: true, encoding: 'utf8' })
  return paths.find((path) => `${sep}${path}`.endsWith(`${sep}${end}`))
}

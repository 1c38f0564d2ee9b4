import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { findScript } from './handler-entry.ts'

/** The folder, or its only subfolder if it contains nothing else, as in SageMaker's model archives. */
export async function modelFolder(folder: string): Promise<string> {
  const [only, ...others] = await readdir(folder, { withFileTypes: true })
  const wrapped = only?.isDirectory() === true && others.length === 0 && only.name !== 'MAR-INF'
  return wrapped ? join(folder, only.name) : folder
}

/** Handler of a model that names none: `handler.` with a script's extension, or `handler.py`. */
export function conventionalHandler(modelDir: string): string | undefined {
  const script = findScript(modelDir, 'handler')
  if (script !== undefined) return relative(modelDir, script)
  return existsSync(join(modelDir, 'handler.py')) ? 'handler.py' : undefined
}

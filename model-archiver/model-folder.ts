import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { findScript } from './handler-entry.ts'

/** The folder itself, or the only folder in it when there is nothing else (spec 6.2, as SageMaker lays models out). */
export async function modelFolder(folder: string): Promise<string> {
  const [only, ...others] = await readdir(folder, { withFileTypes: true })
  const wrapped = only?.isDirectory() === true && others.length === 0 && only.name !== 'MAR-INF'
  return wrapped ? join(folder, only.name) : folder
}

/** The handler of a model that names none: `handler.` and an ending of a script, or Python's. */
export function conventionalHandler(modelDir: string): string | undefined {
  const script = findScript(modelDir, 'handler')
  if (script !== undefined) return relative(modelDir, script)
  return existsSync(join(modelDir, 'handler.py')) ? 'handler.py' : undefined
}

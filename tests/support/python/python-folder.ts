import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { tempDir } from '../temp.ts'

/** A model with one of the handlers beside this file: `name=folder`, as --models takes it. */
export function pythonFolder(
  name: string,
  handler: string,
  config: Record<string, unknown> = {},
  manifest: Record<string, unknown> = {},
): string {
  const folder = join(tempDir(), name)
  mkdirSync(join(folder, 'MAR-INF'), { recursive: true })
  copyFileSync(join(import.meta.dirname, 'handlers', `${handler}.py`), join(folder, `${handler}.py`))
  writeFileSync(join(folder, 'model-config.yaml'), stringify({ minWorkers: 1, maxWorkers: 1, ...config }))
  const model = {
    modelName: name,
    modelVersion: '1.0',
    handler,
    configFile: 'model-config.yaml',
    ...manifest,
  }
  writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify({ runtime: 'python', model }))
  return `${name}=${folder}`
}

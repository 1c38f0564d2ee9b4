import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { REPOSITORY } from './server.ts'
import { tempDir } from './temp.ts'

/**
 * A model with a handler of tests/support/handlers and this model-config.yaml: `name=folder`, as --models
 * takes it.
 */
export function modelFolder(name: string, handler: string, config: Record<string, unknown>): string {
  const source = join(REPOSITORY, 'tests', 'support', 'handlers', handler, 'handler.ts')
  return folderOf(name, `export * from ${JSON.stringify(source)}\n`, config)
}

/** The model `count` under another name and with another model-config.yaml. */
export function countFolder(name: string, config: Record<string, unknown>): string {
  const source = join(REPOSITORY, 'model-store', 'count', 'handler.ts')
  return folderOf(name, `export { default } from ${JSON.stringify(source)}\n`, config)
}

function folderOf(name: string, handler: string, config: Record<string, unknown>): string {
  const folder = join(tempDir(), name)
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.ts'), handler)
  writeFileSync(join(folder, 'model-config.yaml'), stringify(config))
  return `${name}=${folder}`
}

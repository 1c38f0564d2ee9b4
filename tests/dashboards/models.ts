import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { REPOSITORY } from '../support/server-process.ts'

/** Models of the start; `m` has two versions, which are registered later. */
export const MODELS = ['count', 'narrow', 'victim', 'gated', 'sleeper']

const HANDLERS = join(REPOSITORY, 'tests', 'support', 'handlers')
const COUNT = { source: join(REPOSITORY, 'model-store', 'count', 'handler.ts'), exports: 'default' }
const VERSIONS = { source: join(HANDLERS, 'versions', 'handler.ts'), exports: 'handle' }
const GATED = { source: join(HANDLERS, 'gated-load', 'handler.ts'), exports: 'initialize, handle' }

/** Of the model `gated`; it loads while there is `GATE.works` too. */
export function gateOf(folder: string): string {
  return join(folder, 'gate')
}

/** Writes the models of the test below `folder`, and returns their store. */
export async function makeStore(folder: string): Promise<string> {
  const store = join(folder, 'store')
  const one = { minWorkers: 1, maxWorkers: 1, batchSize: 1 }
  const streams = { ...one, asyncCommunication: true, responseTimeout: 600 }
  await model(store, 'count', COUNT, { ...streams, maxConcurrency: 100 })
  await model(store, 'narrow', COUNT, { ...streams, maxConcurrency: 1, jobQueueSize: 4 })
  await model(store, 'victim', COUNT, { ...streams, maxConcurrency: 100 })
  await model(store, 'gated', GATED, { ...one, gate: gateOf(folder), fails: 'throw' })
  const scaling = { scaleToZeroAfter: 1 }
  await model(store, 'sleeper', VERSIONS, { ...one, minWorkers: 0, scaling })
  for (const version of ['1.0', '2.0']) await model(store, `m-${version}`, VERSIONS, one, version)
  return store
}

/** Writes a model `story` with two slots below `folder`, and returns its store. */
export async function makeStory(folder: string): Promise<string> {
  const store = join(folder, 'store')
  const config = { minWorkers: 1, maxWorkers: 1, batchSize: 1, asyncCommunication: true, maxConcurrency: 2 }
  await model(store, 'story', COUNT, config)
  return store
}

async function model(
  store: string,
  name: string,
  { source, exports }: { source: string; exports: string },
  config: object,
  version = '1.0',
): Promise<void> {
  const folder = join(store, name)
  await mkdir(join(folder, 'MAR-INF'), { recursive: true })
  const manifest = {
    runtime: 'node',
    model: { modelName: name.split('-')[0], modelVersion: version, handler: 'handler.ts' },
  }
  await writeFile(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify(manifest))
  await writeFile(join(folder, 'handler.ts'), `export { ${exports} } from ${JSON.stringify(source)}\n`)
  await writeFile(join(folder, 'model-config.yaml'), stringify(config))
}

import { cp, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { MODELS, REPOSITORY, TENSORS } from './places.ts'

/** Runs several requests at once in each worker. */
const CONCURRENT = { asyncCommunication: true, maxConcurrency: 32 }

/** Models by name: the bundled ones, and those of the tests. */
export const STORE = [
  ...['echo', 'count', 'tiny-llama', 'chat'],
  ...['tensors', 'twins', 'spare', 'text-model'],
] as const

/** Makes a model store with all of STORE in `folder`. */
export async function makeStore(folder: string): Promise<void> {
  await mkdir(folder)
  for (const name of ['echo', 'count', 'tiny-llama']) {
    await symlink(join(REPOSITORY, 'model-store', name), join(folder, name))
  }
  for (const name of ['chat', 'text-model']) {
    await cp(join(MODELS, name), join(folder, name), { recursive: true })
  }
  await tensors(folder, 'tensors', 1)
  await tensors(folder, 'twins', 2)
  await tensors(folder, 'spare', 1)
}

/** Metadata that hardly a request of the programs matches: MLServer only reports what the file declares. */
const SETTINGS = {
  implementation: 'handler.Tensors',
  platform: 'mlserver',
  inputs: [{ name: 'prompt', datatype: 'BYTES', shape: [1] }],
}

async function tensors(store: string, name: string, workers: number): Promise<void> {
  await cp(TENSORS, join(store, name), { recursive: true })
  const config = { minWorkers: workers, maxWorkers: workers, ...CONCURRENT }
  await writeFile(join(store, name, 'model-config.yaml'), stringify(config))
  await writeFile(join(store, name, 'model-settings.json'), JSON.stringify({ name, ...SETTINGS }))
}

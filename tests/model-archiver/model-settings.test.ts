import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import {
  implementationHandler,
  readModelSettings,
  environmentFolder,
} from '../../model-archiver/model-settings.ts'
import { prepareModel } from '../../model-archiver/prepare.ts'
import { StoreIndex } from '../../model-archiver/repository.ts'
import { listStore } from '../../model-archiver/store.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { zipOf } from '../support/zip.ts'

function folder(settings: object | string, path = join(tempDir(), 'iris')): string {
  mkdirSync(path, { recursive: true })
  const text = typeof settings === 'string' ? settings : JSON.stringify(settings)
  writeFileSync(join(path, 'model-settings.json'), text)
  writeFileSync(join(path, 'model.ts'), 'export class Iris { predict() { return { outputs: [] } } }\n')
  return path
}

test('what the file says becomes name, version, handler and model-config; model-config.yaml wins', async () => {
  const path = folder({
    name: 'iris_1',
    implementation: 'model.Iris',
    platform: 'own',
    inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }],
    max_batch_size: 8,
    max_batch_time: 0.5,
    parameters: { version: '1', uri: './weights', extra: { a: 1 } },
  })
  writeFileSync(join(path, 'model-config.yaml'), 'batchSize: 2\n')
  const prepared = await prepareModel(path, { tempDir: tempDir(), packageRoot: REPOSITORY })
  expect(prepared).toMatchObject({ name: 'iris_1', version: '1', runtime: 'node', handlerEntry: 'Iris' })
  expect(prepared.modelConfig).toMatchObject({
    batchSize: 2,
    maxBatchDelay: 500,
    openInference: { platform: 'own', inputs: [{ name: 'x' }] },
    modelSettings: { parameters: { uri: join(path, 'weights'), extra: { a: 1 } } },
  })
  await prepared.dispose()
})

test.each([
  ['only reports the inputs of its file', '', false],
  ['checks them with validateInputs: true', 'validateInputs: true\n', true],
  ['checks the inputs of its own model-config.yaml', 'openInference: { inputs: [] }\n', true],
  ['also reports those with validateInputs: false', 'validateInputs: false\nopenInference: {}\n', false],
])('a model with a model-settings.json %s', async (_what, yaml, validateInputs) => {
  const path = folder({ inputs: [{ name: 'x', datatype: 'FP32', shape: [-1, 4] }] })
  writeFileSync(join(path, 'model-config.yaml'), `batchSize: 2\n${yaml}`)
  const prepared = await prepareModel(path, { tempDir: tempDir(), packageRoot: REPOSITORY })
  expect(prepared.modelConfig).toMatchObject({ validateInputs })
  await prepared.dispose()
})

describe('a model that only variables describe', () => {
  /** As in a test of its own: nothing else here has such variables. */
  async function withEnv<T>(env: Record<string, string>, run: () => Promise<T>): Promise<T> {
    Object.assign(process.env, env)
    try {
      return await run()
    } finally {
      for (const name of Object.keys(env)) Reflect.deleteProperty(process.env, name)
    }
  }

  test('is in the store, and is prepared as if a file said it', async () => {
    const store = tempDir()
    writeFileSync(join(store, 'model.ts'), 'export class Iris { predict() { return { outputs: [] } } }\n')
    const env = {
      MLSERVER_MODEL_NAME: 'iris',
      MLSERVER_MODEL_IMPLEMENTATION: 'model.Iris',
      MLSERVER_MODEL_URI: store,
      MLSERVER_MODEL_INPUTS: '[{"name":"x","datatype":"FP32","shape":[4]}]',
      MLSERVER_MODEL_MAX_BATCH_SIZE: '8',
      mlserver_model_max_batch_time: '0.1',
      MLSERVER_MODEL_EXTRA: '{"a":1}',
    }
    await withEnv(env, async () => {
      expect((await listStore(store)).models).toEqual([{ location: store, path: store }])
      expect(await new StoreIndex(store).models()).toMatchObject([{ name: 'iris', location: store }])
      const prepared = await prepareModel(store, { tempDir: tempDir(), packageRoot: REPOSITORY })
      expect(prepared).toMatchObject({ name: 'iris', version: '1.0', runtime: 'node', handlerEntry: 'Iris' })
      expect(prepared.modelConfig).toMatchObject({
        batchSize: 8,
        maxBatchDelay: 100,
        validateInputs: false,
        openInference: { inputs: [{ name: 'x' }] },
        modelSettings: { parameters: { uri: store, extra: { a: 1 } } },
      })
      await prepared.dispose()
    })
    expect((await listStore(store)).models).toEqual([])
  })

  test('gives way to folders with a file, and other folders are none of it', async () => {
    const store = tempDir()
    folder({ name: 'named', implementation: 'model.Iris' }, join(store, 'a'))
    const env = { MLSERVER_MODEL_IMPLEMENTATION: 'model.Other', MLSERVER_MODELS_DIR: store }
    const { models } = await listStore(store, env)
    expect(models.map(({ location }) => location)).toEqual(['a'])
    expect(await readModelSettings(tempDir(), env)).toBeUndefined()
    expect(await readModelSettings(store, env)).toMatchObject({ implementation: 'model.Other' })
  })

  test('may have a file as its URI: its folder is the model', () => {
    const store = tempDir()
    writeFileSync(join(store, 'x.gguf'), '')
    const env = { MLSERVER_MODEL_IMPLEMENTATION: 'x', MLSERVER_MODEL_URI: join(store, 'x.gguf') }
    expect(environmentFolder(env)).toBe(store)
    expect(environmentFolder({ ...env, MLSERVER_MODEL_URI: 's3://bucket/x' })).toBeUndefined()
    expect(environmentFolder({ MLSERVER_MODEL_URI: store })).toBeUndefined()
  })
})

test.each([
  ['mlserver_llm_api.LLMRuntime', { asyncCommunication: true }],
  ['mlserver_llm_local.runtime.Local', { asyncCommunication: true, maxConcurrency: 4 }],
])('%s comes with the server, and so does what it needs of the config', async (implementation, config) => {
  const path = folder({ implementation })
  const prepared = await prepareModel(path, { tempDir: tempDir(), packageRoot: REPOSITORY })
  expect(existsSync(prepared.handlerPath!)).toBe(true)
  expect(prepared).toMatchObject({ runtime: 'node', modelConfig: config })
  await prepared.dispose()
})

describe('settings', () => {
  test.each([
    [{ max_batch_size: 1, max_batch_time: 1 }],
    [{ max_batch_size: 8, max_batch_time: 0 }],
    [{ max_batch_size: 8 }],
  ])('switch no batching on: %j', async (settings) => {
    const read = await readModelSettings(folder(settings))
    expect(read!.config).not.toHaveProperty('batchSize')
  })

  test('variables stand in for what the file leaves out', async () => {
    const env = { MLSERVER_MODEL_IMPLEMENTATION: 'a.B', MLSERVER_MODEL_URI: '/mnt/models' }
    const read = await readModelSettings(folder({}), env)
    expect(read).toMatchObject({
      implementation: 'a.B',
      config: { modelSettings: { parameters: { uri: '/mnt/models' } } },
    })
  })

  test.each(['{', '[]', '{"name":1}', '{"parameters":[]}', '{"max_batch_size":"8"}'])(
    'are refused: %s',
    async (text) => {
      await expect(readModelSettings(folder(text))).rejects.toMatchObject({ code: 'INVALID_MODEL' })
    },
  )
})

test.each([
  ['model.Iris', 'model:Iris'],
  ['model.ts', 'model.ts'],
  ['model.ts:Iris', 'model.ts:Iris'],
  ['model', 'model'],
  ['none.Iris', 'none.Iris'],
])('the implementation %s is the handler %s', (implementation, handler) => {
  expect(implementationHandler(folder({}), implementation)).toBe(handler)
})

test('a store is searched two levels deep; a folder called like its version has the name of the one above', async () => {
  const store = tempDir()
  folder({ name: 'named' }, join(store, 'a'))
  folder({ parameters: { version: '2' } }, join(store, 'many', '2'))
  folder({}, join(store, 'too', 'deep', 'here'))
  folder('{', join(store, 'broken'))
  mkdirSync(join(store, 'plain'))
  writeFileSync(join(store, 'plain', 'handler.js'), '')
  const found = await new StoreIndex(store).models()
  expect(found.map(({ name }) => name).sort()).toEqual(['broken', 'many', 'named', 'plain'])
})

test('a store knows archives and folders by the names in their manifests, as a start loads them', async () => {
  const store = tempDir()
  const manifest = (modelName: string): string =>
    JSON.stringify({ runtime: 'node', model: { modelName, modelVersion: '1.0', handler: 'h.js' } })
  writeFileSync(join(store, 'some-file.mar'), await zipOf({ 'MAR-INF/MANIFEST.json': manifest('in-zip') }))
  mkdirSync(join(store, 'a-folder', 'MAR-INF'), { recursive: true })
  writeFileSync(join(store, 'a-folder', 'MAR-INF', 'MANIFEST.json'), manifest('in-folder'))
  writeFileSync(join(store, 'broken-one.mar'), 'no zip')
  const names = (await new StoreIndex(store).models()).map(({ name }) => name)
  expect(names.sort()).toEqual(['broken_one', 'in-folder', 'in-zip'])
})

test('a store with a model-settings.json of its own is that model, as in MLServer; versions below a folder are models each', async () => {
  const store = join(tempDir(), 'my-iris')
  folder({ implementation: 'model.Iris' }, store)
  mkdirSync(join(store, 'parts'))
  writeFileSync(join(store, 'parts', 'handler.js'), '')
  expect((await listStore(store)).models).toEqual([{ location: store, path: store }])
  expect(await new StoreIndex(store).models()).toMatchObject([{ name: 'my-iris', location: store }])
  const prepared = await prepareModel(store, { tempDir: tempDir(), packageRoot: REPOSITORY })
  expect([prepared.name, prepared.handlerEntry]).toEqual(['my-iris', 'Iris'])
  await prepared.dispose()
  const versions = ['1', '2'].map((version) =>
    folder({ parameters: { version } }, join(store, 'many', version)),
  )
  expect((await listStore(store)).models.map(({ path }) => path)).toEqual([store, ...versions])
  expect((await new StoreIndex(store).models()).map(({ name }) => name).sort()).toEqual([
    'many',
    'many',
    'my-iris',
  ])
  const second = await prepareModel(versions[1]!, { tempDir: tempDir(), packageRoot: REPOSITORY })
  expect([second.name, second.version]).toEqual(['many', '2'])
  await second.dispose()
})

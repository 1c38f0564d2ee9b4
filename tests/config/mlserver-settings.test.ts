import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { tempDir } from '../support/temp.ts'

function store(settings: object | string): string {
  const folder = tempDir()
  writeFileSync(
    join(folder, 'settings.json'),
    typeof settings === 'string' ? settings : JSON.stringify(settings),
  )
  return folder
}

test('settings.json of the model store: its keys, the defaults of MLServer, and a warning for what does nothing', async () => {
  const modelStore = store({
    http_port: 9000,
    parallel_workers: 3,
    gzip_enabled: false,
    grpc_max_message_length: -1,
    cors_settings: {
      allow_origins: ['http://a', 'http://b'],
      allow_headers: ['a', 'b'],
      expose_headers: ['c'],
    },
    kafka_enabled: false,
  })
  const { settings, warnings } = await loadSettings({ modelStore, configSnapshots: false }, {})
  expect(settings).toMatchObject({
    modelStore,
    loadModels: 'all',
    inferenceAddress: { host: '0.0.0.0', port: 9000 },
    managementAddress: { host: '127.0.0.1', port: 8083 },
    metricsAddress: { host: '0.0.0.0', port: 8082 },
    openInferenceGrpcAddress: '0.0.0.0',
    openInferenceGrpcPort: 8081,
    defaultWorkersPerModel: 3,
    openInferenceGzip: false,
    maxRequestSize: 2_147_483_647,
    corsAllowedOrigin: 'http://a,http://b',
    corsAllowedHeaders: 'a,b',
    corsExposedHeaders: 'c',
  })
  expect(warnings).toEqual([`${join(modelStore, 'settings.json')}: kafka_enabled has no effect here`])
})

test('the store that counts has it, whoever named that store', async () => {
  const counts = store({ http_port: 9000 })
  const file = join(tempDir(), 'ts.properties')
  writeFileSync(file, `enable_envvars_config=true\nmodel_store=${store({ http_port: 1 })}\n`)
  const env = { TS_MODEL_STORE: counts }
  const { settings } = await loadSettings({ tsConfig: file, configSnapshots: false }, env)
  expect(settings).toMatchObject({ modelStore: counts, inferenceAddress: { port: 9000 } })
})

test('the configuration and the flags win over it', async () => {
  const modelStore = store({ http_port: 9000 })
  const tsConfig = join(modelStore, 'config.properties')
  writeFileSync(tsConfig, 'inference_address=http://127.0.0.1:1\nload_models=a.mar\n')
  const { settings } = await loadSettings({ modelStore, tsConfig, configSnapshots: false }, {})
  expect(settings).toMatchObject({ inferenceAddress: { port: 1 }, loadModels: [{ location: 'a.mar' }] })
})

test('MLSERVER_MODELS_DIR is the store where nobody names one; other variables fill in', async () => {
  const folder = tempDir()
  const env = {
    MLSERVER_MODELS_DIR: folder,
    MLSERVER_HTTP_PORT: '9000',
    MLSERVER_LOAD_MODELS_AT_STARTUP: 'False',
  }
  const { settings } = await loadSettings({ configSnapshots: false }, env)
  expect(settings).toMatchObject({ modelStore: folder, inferenceAddress: { port: 9000 }, loadModels: [] })
})

test('without the file and that variable nothing changes', async () => {
  const modelStore = tempDir()
  const { settings } = await loadSettings(
    { modelStore, configSnapshots: false },
    { MLSERVER_HTTP_PORT: '9000' },
  )
  expect(settings).toMatchObject({ inferenceAddress: { host: '127.0.0.1', port: 8080 } })
  expect(settings.openInferenceGrpcPort).toBeUndefined()
})

test.each(['{', '[]', '{"http_port":"none"}'])('%s is refused', async (text) => {
  const loaded = loadSettings({ modelStore: store(text), configSnapshots: false }, {})
  await expect(loaded).rejects.toMatchObject({ code: 'CONFIG' })
})

test('what it says in vain is a warning, from variables too', async () => {
  const modelStore = store({
    htp_port: 1,
    metrics_endpoint: '/m',
  })
  const env = { MLSERVER_KAFKA_ENABLED: 'true', MLSERVER_MODEL_NAME: 'm' }
  const { warnings } = await loadSettings({ modelStore, configSnapshots: false }, env)
  const of = (what: string): string => `${join(modelStore, 'settings.json')}: ${what} has no effect here`
  expect(warnings).toContain('environment variable MLSERVER_KAFKA_ENABLED: kafka_enabled has no effect here')
  expect(warnings.filter((warning) => !warning.includes('MLSERVER_')).sort()).toEqual(
    ['htp_port', 'a metrics_endpoint other than /metrics'].map(of).sort(),
  )
})

test('it is that of the store which counts: a variable that overrides the flag', async () => {
  const [flag, overriding] = [store({ http_port: 1111 }), store({ http_port: 2222 })]
  const tsConfig = join(flag, 'config.properties')
  writeFileSync(tsConfig, 'enable_envvars_config=true\n')
  const flags = { modelStore: flag, tsConfig, configSnapshots: false }
  const { settings } = await loadSettings(flags, { TS_MODEL_STORE: overriding })
  expect(settings).toMatchObject({ modelStore: overriding, inferenceAddress: { port: 2222 } })
})

test('a variable names the root of the models', async () => {
  const folder = store({})
  const env = { MLSERVER_MODELS_DIR: folder, MLSERVER_MODEL_REPOSITORY_ROOT: 'models' }
  const { settings } = await loadSettings({ configSnapshots: false }, env)
  expect(settings.modelStore).toBe(join(folder, 'models'))
})

test('what is wrong is said of the variable that the user set, and of the file where both say it', async () => {
  const modelStore = store({ grpc_port: 1 })
  const wrong = (name: string): Promise<unknown> =>
    loadSettings({ modelStore, configSnapshots: false }, { [name]: 'none', mlserver_grpc_port: '1' })
  await expect(wrong('MLSERVER_HTTP_PORT')).rejects.toThrow('environment variable MLSERVER_HTTP_PORT')
  await expect(wrong('mlserver_metrics_port')).rejects.toThrow('environment variable mlserver_metrics_port')
  const { warnings } = await loadSettings(
    { modelStore: store({ kafka_enabled: true }), configSnapshots: false },
    { MLSERVER_KAFKA_ENABLED: 'true' },
  )
  expect(warnings).toEqual([expect.stringMatching(/settings\.json: kafka_enabled has no effect here$/)])
})

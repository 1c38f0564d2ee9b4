import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from '@jest/globals'
import { formatProperty } from '../../frontend/config/properties.ts'
import { loadSettings, type ConfigFlags } from '../../frontend/config/load-settings.ts'
import { tempDir } from '../support/temp.ts'

const home = process.cwd()
const SNAPSHOT = '20260101000000001-startup.cfg'
const PATH = join('logs', 'config', SNAPSHOT)

beforeEach(() => process.chdir(tempDir()))
afterAll(() => process.chdir(home))

/** `model_snapshot` with one model of this name, as a line of a file. */
function modelLine(name: string): string {
  const models = { [name]: { '1.0': { defaultVersion: true, marName: `${name}.mar` } } }
  return `${formatProperty('model_snapshot', JSON.stringify({ models }))}\n`
}

interface Start {
  /** Lines of the last snapshot, which has the model `old`; undefined: there is none. */
  last?: string
  /** config.properties, or the file of --ts-config; undefined: there is none. */
  file?: string
  flags?: ConfigFlags
  env?: Record<string, string>
}

async function load({ last, file, flags = {}, env = {} }: Start) {
  mkdirSync(join('logs', 'config'), { recursive: true })
  if (last !== undefined) writeFileSync(PATH, modelLine('old') + last)
  if (file !== undefined) writeFileSync(flags.tsConfig ?? 'config.properties', file)
  return loadSettings(flags, env)
}

const FROM_SNAPSHOT = `Models come from the snapshot ${PATH}; start with --ncs to ignore it`

test.each<[string, Start, restored: string | undefined, line: string]>([
  [
    'nothing',
    {},
    undefined,
    'No models to load: no --models, no load_models, and no snapshot was read (--ncs and --ts-config leave it out)',
  ],
  ['a snapshot', { last: '' }, 'old', FROM_SNAPSHOT],
  ['a snapshot and a file', { last: '', file: 'debug=true' }, 'old', FROM_SNAPSHOT],
  [
    '--ncs',
    { last: '', flags: { configSnapshots: false } },
    undefined,
    'No models to load: no --models, no load_models, and no snapshot was read (--ncs and --ts-config leave it out)',
  ],
  [
    'a named file',
    { last: '', file: 'load_models=all', flags: { tsConfig: 'named.properties' } },
    undefined,
    'Models come from load_models (named.properties:1)',
  ],
  ['--models', { flags: { models: ['a.mar'] } }, undefined, 'Models come from --models'],
  [
    '--models, also the same as in the snapshot',
    { last: 'load_models=a.mar', flags: { models: ['a.mar'] } },
    undefined,
    `Models come from --models, not from the snapshot ${PATH}`,
  ],
  [
    'load_models',
    { file: 'load_models=all' },
    undefined,
    'Models come from load_models (config.properties:1)',
  ],
  [
    'load_models as before',
    { last: 'load_models=all', file: 'load_models=all' },
    'old',
    `Models come from the snapshot ${PATH}, not from load_models (config.properties:1); start with --ncs to ignore it`,
  ],
  [
    'load_models with a new pin',
    { last: 'load_models=a.mar', file: `load_models=a.mar#sha256=${'0'.repeat(64)}` },
    undefined,
    `Models come from load_models (config.properties:1), which has changed since, not from the snapshot ${PATH}`,
  ],
  ['load_models of the snapshot only', { last: 'load_models=all' }, 'old', FROM_SNAPSHOT],
  [
    'another load_models by variable',
    { last: 'enable_envvars_config=true\nload_models=all', env: { TS_LOAD_MODELS: 'a.mar' } },
    undefined,
    `Models come from load_models (environment variable TS_LOAD_MODELS), which has changed since, not from the snapshot ${PATH}`,
  ],
  [
    'model_snapshot in a file',
    { file: `load_models=all\n${modelLine('named')}` },
    'named',
    'Models come from model_snapshot (config.properties:2)',
  ],
  [
    'model_snapshot in a file, and a later snapshot',
    { last: '', file: modelLine('named') },
    'old',
    FROM_SNAPSHOT,
  ],
  [
    'model_snapshot in a file, and --models',
    { file: modelLine('named'), flags: { models: ['a.mar'] } },
    undefined,
    'Models come from --models, not from config.properties:1',
  ],
])('%s', async (_what, start, restored, line) => {
  const { settings, modelSource } = await load(start)
  expect(modelSource.line).toBe(line)
  expect(Object.keys(settings.modelSnapshot?.models ?? {})).toEqual(restored === undefined ? [] : [restored])
})

test('a broken snapshot does not matter when --models says which models are loaded', async () => {
  const { settings } = await load({ last: 'model_snapshot={', flags: { models: ['a.mar'] } })
  expect(settings.modelSnapshot).toBeUndefined()
  await expect(load({ last: 'model_snapshot={' })).rejects.toThrow(
    /^logs\/config\/\S+:2: model_snapshot must be .*; start with --ncs to ignore it$/,
  )
})

test.each([
  ['is empty', ''],
  ['contains NUL bytes', '\0'.repeat(4096)],
  ['contains NUL bytes', `${modelLine('old')}${'\0'.repeat(4096)}`],
  ['has no model_snapshot', '#Saving snapshot\nmodel_store=/st'],
])('a start is refused when the newest snapshot %s', async (why, text) => {
  mkdirSync(join('logs', 'config'), { recursive: true })
  writeFileSync(PATH, text)
  await expect(loadSettings()).rejects.toThrow(
    `The snapshot ${PATH} is damaged: it ${why}; remove it to start from the one before it, or start with --ncs to ignore it`,
  )
})

const UNSAFE =
  'disable_token_authorization=TRUE, enable_model_api=true, allow_insecure_exposure=true, allow_private_urls=true, check_inference_origin=false'

test('without a file, the settings of the snapshot count, but no switch that opens the server', async () => {
  const last = `${UNSAFE.split(', ').join('\n')}\nmetrics_require_token=true\nmax_request_elements=700\n`
  const { settings, warnings } = await load({ last, env: { MLSERVER_MODELS_DIR: 'store' } })
  expect(settings).toMatchObject({
    ...{ maxRequestElements: 700, metricsRequireToken: true },
    ...{ disableTokenAuthorization: false, enableModelApi: false, allowInsecureExposure: false },
    ...{ allowPrivateUrls: false, checkInferenceOrigin: true },
  })
  expect(warnings).toEqual([
    `${UNSAFE} of the snapshot ${PATH} has no effect: a start must set it itself, by a flag or in a configuration file`,
    `No config.properties and no --ts-config, so from the snapshot ${PATH}: metrics_require_token=true, max_request_elements=700; start with --ncs to ignore it`,
  ])
})

test.each([
  ['worker_wrapper', 'nice -n 5'],
  ['models', '{"m":{"1.0":{"workerWrapper":[]}}}'],
])('no wrapper of workers comes from a snapshot: %s', async (key, value) => {
  const last = `${key}=${value}\n`
  const env = { MLSERVER_MODELS_DIR: 'store' }
  await expect(load({ last, env })).rejects.toThrow(
    `${PATH}: ${key} with a worker wrapper is not taken from a snapshot: set it in a configuration file; start with --ncs`,
  )
  const again = { ...env, [`TS_${key.toUpperCase()}`]: value }
  const { settings } = await load({ last, env: again })
  expect(settings.models['m'] ?? settings.workerWrapper).toBeTruthy()
  const { settings: own } = await load({ last, env, file: '' })
  expect([own.workerWrapper, own.models]).toEqual([[], {}])
})

test('settings of the environment come before those of the snapshot', async () => {
  const env = { MLSERVER_MODELS_DIR: 'store', MLSERVER_HTTP_PORT: '4711' }
  const { settings } = await load({ last: 'inference_address=http://127.0.0.1:1', env })
  expect(settings.inferenceAddress).toMatchObject({ port: 4711 })
})

test('with a file, a key that only the snapshot has is told and has no effect', async () => {
  const last = 'allowed_hosts=a.example\napi_keys_file=/keys.json\njob_queue_size=7\nversion=0.12.0\n'
  const { settings, warnings } = await load({ last, file: 'job_queue_size=7' })
  expect(settings.apiKeysFile).toBeUndefined()
  expect(warnings).toEqual([
    `Changed since the snapshot ${PATH}: allowed_hosts=not set (was a.example), api_keys_file=not set (was /keys.json)`,
  ])
})

test('that load_models has changed is told with the models alone', async () => {
  const last = 'load_models=a.mar\njob_queue_size=7\n'
  const { warnings } = await load({ last, file: 'load_models=b.mar\njob_queue_size=8' })
  expect(warnings.filter((line) => line.startsWith('Changed since'))).toEqual([
    `Changed since the snapshot ${PATH}: job_queue_size=8 (was 7)`,
  ])
})

test('what a flag says now is no news', async () => {
  const flags = { modelStore: 'here' }
  const last = 'model_store=/elsewhere\njob_queue_size=7\nkeystore_pass=a\n'
  const { warnings } = await load({ last, file: 'job_queue_size=7\nkeystore_pass=b', flags })
  expect(warnings).toEqual([`Changed since the snapshot ${PATH}: keystore_pass=*** (was ***)`])
})

test('a start whose flags set all that the snapshot has takes nothing from it', async () => {
  const { warnings } = await load({ last: 'model_store=/elsewhere\n', flags: { modelStore: 'here' } })
  expect(warnings).toEqual([])
})

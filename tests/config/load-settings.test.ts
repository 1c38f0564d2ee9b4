import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { checkStores, loadSettings, type ConfigFlags } from '../../frontend/config/load-settings.ts'
import { tempDir } from '../support/temp.ts'

const home = process.cwd()
const folder = tempDir()
const byVariable = join(folder, 'variable.properties')
const byFlag = join(folder, 'flag.properties')

beforeAll(() => {
  process.chdir(folder)
  writeFileSync(byVariable, 'job_queue_size=1')
  writeFileSync(byFlag, 'job_queue_size=2')
})
afterAll(() => process.chdir(home))

async function queueSize(tsConfig?: string, env = {}): Promise<number> {
  return (await loadSettings({ tsConfig }, env)).settings.jobQueueSize
}

test('TS_CONFIG_FILE comes before --ts-config, before ./config.properties, before the defaults', async () => {
  expect(await queueSize()).toBe(100)
  writeFileSync('config.properties', 'job_queue_size=3')
  expect(await queueSize()).toBe(3)
  expect(await queueSize(byFlag)).toBe(2)
  expect(await queueSize(byFlag, { TS_CONFIG_FILE: byVariable })).toBe(1)
})

test('the newest snapshot has settings only for a start that finds no file; --ncs reads none', async () => {
  const logs = tempDir()
  mkdirSync(join(logs, 'config'))
  const snapshot = (name: string, size: number): void =>
    writeFileSync(join(logs, 'config', name), `job_queue_size=${size}\nmodel_snapshot={"models":{}}`)
  snapshot('20260101000000001-startup.cfg', 11)
  snapshot('20260101000000003-shutdown.cfg', 13)
  snapshot('20260101000000002-snapshot.cfg', 12)
  const env = { LOG_LOCATION: logs }
  const size = async (flags: ConfigFlags, more = {}): Promise<number> =>
    (await loadSettings(flags, { ...env, ...more })).settings.jobQueueSize
  rmSync('config.properties', { force: true })
  expect(await size({})).toBe(13)
  expect(await size({ configSnapshots: false })).toBe(100)
  writeFileSync('config.properties', 'job_queue_size=3')
  expect(await size({})).toBe(3)
  writeFileSync('config.properties', '')
  expect(await size({})).toBe(100)
  expect(await size({ tsConfig: byFlag })).toBe(2)
  expect(await size({}, { TS_CONFIG_FILE: byVariable })).toBe(1)
})

test('a file that was named must be there', async () => {
  await expect(loadSettings({ tsConfig: 'none.properties' }, {})).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('none.properties (from --ts-config) cannot be read'),
  })
  await expect(loadSettings({}, { TS_CONFIG_FILE: folder })).rejects.toMatchObject({ code: 'CONFIG' })
})

test('every flag has its setting, and those without effect warn', async () => {
  const { settings, warnings } = await loadSettings(
    {
      modelStore: 'store',
      models: ['a=b.mar', 'c.mar'],
      disableTokenAuth: true,
      enableModelApi: true,
      workflowStore: 'w',
      pluginsPath: 'p',
      cppLogConfig: 'c',
    },
    {},
  )
  expect(settings).toMatchObject({
    modelStore: join(folder, 'store'),
    workflowStore: join(folder, 'w'),
    loadModels: [{ name: 'a', location: 'b.mar' }, { location: 'c.mar' }],
    disableTokenAuthorization: true,
    enableModelApi: true,
  })
  expect(warnings.map((warning) => warning.split(':')[0]).sort()).toEqual([
    '--cpp-log-config',
    '--plugins-path',
  ])
})

test('flags can only switch authorization off and the model API on', async () => {
  writeFileSync('config.properties', 'disable_token_authorization=true\nenable_model_api=true')
  const { settings } = await loadSettings({ disableTokenAuth: false, enableModelApi: false }, {})
  expect([settings.disableTokenAuthorization, settings.enableModelApi]).toEqual([true, true])
})

test('a log config is YAML or JSON, and beats LOG_LOCATION', async () => {
  writeFileSync('log.yaml', 'level: DEBUG\nlocation: from-yaml\nformat: json\n')
  writeFileSync('log.json', '{"level": "warn"}')
  const env = { LOG_LOCATION: 'from-env' }
  const load = async (logConfig: string) => (await loadSettings({ logConfig }, env)).settings
  expect(await load('log.yaml')).toMatchObject({
    logLevel: 'debug',
    logLocation: join(folder, 'from-yaml'),
    logFormat: 'json',
  })
  expect(await load('log.json')).toMatchObject({
    logLevel: 'warn',
    logLocation: join(folder, 'from-env'),
    logFormat: 'text',
  })
})

test('a log4j2 file is read, also the one that vmargs name, and is an error where it is missing', async () => {
  const missing = loadSettings({ logConfig: 'log4j2.xml' }, {})
  await expect(missing).rejects.toMatchObject({ code: 'CONFIG', message: expect.stringContaining('ENOENT') })
  writeFileSync('log4j2.xml', LOG4J)
  const read = { logLevel: 'error', logConsole: ['ts_log', 'model_log'], logFiles: ['audit_log'] }
  const { settings, warnings } = await loadSettings({ logConfig: 'log4j2.xml' }, {})
  expect(settings).toMatchObject(read)
  expect(warnings).toEqual(['log4j2.xml (from --log-config): not read: loggers io.netty'])
  writeFileSync('vm.properties', 'vmargs=-Xmx1g -Dlog4j.configurationFile=file://log4j2.xml -Xss1m')
  expect((await loadSettings({ tsConfig: 'vm.properties' }, {})).settings).toMatchObject(read)
  writeFileSync('none.properties', 'vmargs=-Dlog4j.configurationFile=none.xml')
  const none = await loadSettings({ tsConfig: 'none.properties' }, {})
  expect(none.warnings[0]).toMatch(/^none\.xml \(from vmargs, none\.properties:1\) cannot be read: ENOENT/)
  for (const text of ['<Configuration>', '<log4j/>']) {
    writeFileSync('bad.xml', text)
    await expect(loadSettings({ logConfig: 'bad.xml' }, {})).rejects.toMatchObject({ code: 'CONFIG' })
  }
})

const LOG4J = `<Configuration>
  <Appenders><Console name="out"/></Appenders>
  <Loggers>
    <Logger name="io.netty" level="error"/>
    <Root level="error"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>`

test.each([
  ['level: loud', 'log_level must be one of debug, info, warn, error, found loud'],
  ['colour: red', 'colour is not supported'],
  ['__proto__: red', '__proto__ is not supported'],
  ['level: 3', 'level must be a string'],
  ['- a', 'the file must be a map with the fields level, location, metricsLocation, format, files, console'],
  ['a: [', 'bad.yaml (from --log-config): '],
])('a log config that says %j is one clear line', async (text, message) => {
  writeFileSync('bad.yaml', text)
  const error = await loadSettings({ logConfig: 'bad.yaml' }, {}).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'CONFIG', message: expect.stringContaining(message) })
  expect((error as Error).message).not.toContain('\n')
})

test('the model store must be named and be a folder', async () => {
  mkdirSync('is-folder')
  const check = async (modelStore?: string) => checkStores(await loadSettings({ modelStore }, {}))
  await expect(check()).rejects.toMatchObject({
    code: 'CONFIG',
    message: expect.stringContaining('Missing mandatory parameter --model-store'),
  })
  await expect(check('byVariable')).rejects.toMatchObject({
    message: expect.stringContaining('--model-store directory not found'),
  })
  await expect(check(byVariable)).rejects.toMatchObject({ code: 'CONFIG' })
  await expect(check('is-folder')).resolves.toBeUndefined()
})

test('a folder called config.properties is no file: of a ConfigMap that does not exist', async () => {
  rmSync('config.properties', { force: true })
  mkdirSync('config.properties')
  const loading = loadSettings({ configSnapshots: false }, {})
  await expect(loading.finally(() => rmSync('config.properties', { recursive: true }))).resolves.toBeDefined()
  await expect(loadSettings({ tsConfig: '.' }, {})).rejects.toMatchObject({ code: 'CONFIG' })
})

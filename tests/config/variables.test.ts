import { expect, test } from '@jest/globals'
import { collectEntries } from '../../frontend/config/collect-entries.ts'
import type { KeySpec } from '../../frontend/config/key-spec.ts'
import { KEYS } from '../../frontend/config/keys.ts'
import { loadSettings } from '../../frontend/config/load-settings.ts'
import { tempDir } from '../support/temp.ts'

const FILE_KEYS = (Object.values(KEYS) as KeySpec<unknown>[]).filter(({ from }) => from === 'file')

test.each(FILE_KEYS.map((spec) => [spec.name, spec] as const))(
  'the variable of %s sets it without any file',
  (name, { env: variable }) => {
    // Its type reads it as it would from a file.
    const value = name.startsWith('enable_envvars') || name.startsWith('use_env') ? 'true' : 'said'
    const switches = { TS_ENABLE_ENVVARS_CONFIG: 'true', TS_USE_ENV_ALLOWED_URLS: 'true' }
    const env = { ...switches, [variable]: value }
    const entry = collectEntries({ file: [], flags: [], env }, []).get(name)
    expect(entry).toEqual({ name, text: value, origin: `environment variable ${variable}` })
  },
)

test('where MLServer’s variables configure the server, more requests can wait', async () => {
  const env = { MLSERVER_MODELS_DIR: tempDir() }
  expect((await loadSettings({ configSnapshots: false }, env)).settings.jobQueueSize).toBe(1000)
})

test('where MLServer’s variables configure the server, all others count too, in both directions', async () => {
  const env = { MLSERVER_MODELS_DIR: tempDir(), MLSERVER_GRPC_MAX_MESSAGE_LENGTH: '9000000' }
  const sizes = async (own: Record<string, string>) => {
    const { settings } = await loadSettings({ configSnapshots: false }, { ...env, ...own })
    return [settings.maxRequestSize, settings.maxResponseSize]
  }
  expect(await sizes({})).toEqual([9_000_000, 9_000_000])
  expect(await sizes({ TS_MAX_RESPONSE_SIZE: '5' })).toEqual([9_000_000, 5])
  expect(await sizes({ TS_MAX_RESPONSE_SIZE: '5', TS_ENABLE_ENVVARS_CONFIG: 'false' })).toEqual([
    9_000_000, 9_000_000,
  ])
})

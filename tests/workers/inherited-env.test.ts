import { afterEach, expect, test } from '@jest/globals'
import { inheritedEnv } from '../../frontend/workers/worker-env.ts'

const BEFORE = { ...process.env }

afterEach(() => {
  process.env = { ...BEFORE }
})

test('workers inherit every variable of the server but its own secrets and those that are forbidden', () => {
  const arrive = {
    ...{ PATH: '/bin', HF_TOKEN: 'x', OPENAI_API_KEY: 'x', ENABLE_TORCH_PROFILER: 'true' },
    ...{ https_proxy: 'http://me:password@proxy:3128', ANY_WORD: 'x', TS_LOG_LEVEL: 'debug' },
  }
  const kept = { TS_KEYSTORE_PASS: 'x', TS_OTHER_PASSWORD: 'x', NAMED_IN_THE_FILE: 'hunter2' }
  process.env = { ...arrive, ...kept, AWS_REGION: 'x', AWS_SECRET: 'x', MY_AWS: 'x' }
  const settings = { blacklistEnvVars: /^(?:AWS_.*)$/, keystorePass: 'hunter2' }
  expect(inheritedEnv(settings)).toEqual({ ...arrive, MY_AWS: 'x' })
})

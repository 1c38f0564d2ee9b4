import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { INERT_KEYS } from '../../frontend/config/removed-keys.ts'
import { KEYS } from '../../frontend/config/keys.ts'
import { ServeError } from '../../common/errors.ts'
import { configError, settingsOf } from './support.ts'

test('the fields of `models` are checked as keys are, and may have the names of the calls', () => {
  const version =
    '{"defaultVersion":true,"minWorker":1,"maxWorker":2,"marName":"a.mar","maxRetryTimeoutInSec":2}'
  const { settings, warnings } = settingsOf({ file: `models={"a":{"1.0":${version}}}` })
  expect(settings.models).toEqual({ a: { '1.0': { defaultVersion: true, minWorkers: 1, maxWorkers: 2 } } })
  expect(warnings).toEqual([
    'config.properties:1: models: a/1.0: unknown field maxRetryTimeoutInSec is ignored',
  ])
})

describe('without anything said', () => {
  const { settings, warnings, origins } = settingsOf({})

  test('the settings are the documented defaults', () => {
    expect(settings).toMatchObject({
      inferenceAddress: { kind: 'tcp', tls: false, host: '127.0.0.1', port: 8080 },
      metricsAddress: { kind: 'tcp', tls: false, host: '127.0.0.1', port: 8082 },
      grpcInferencePort: 7070,
      modelStore: undefined,
      loadModels: [],
      models: {},
      jobQueueSize: 100,
      maxRequestSize: 6553500,
      defaultResponseTimeout: undefined,
      defaultFirstResponseTimeout: undefined,
      defaultRequestTimeout: 0,
      cancelGraceMs: 10000,
      streamWindowSize: 262144,
      drainTimeout: 30,
      disableTokenAuthorization: false,
      enableModelApi: false,
      tokenExpirationMin: 60,
      metricsMode: 'log',
      logLevel: 'info',
    })
    expect(warnings).toEqual([])
    expect(origins.jobQueueSize).toBe('default')
  })

  test('they are frozen with everything in them', () => {
    expect(() => Object.assign(settings.inferenceAddress, { port: 1 })).toThrow(TypeError)
    expect(() => Object.assign(settings, { jobQueueSize: 1 })).toThrow(TypeError)
  })

  test('a frozen regular expression still matches', () => {
    const allowed = (url: string): boolean => settings.allowedUrls.some((pattern) => pattern.test(url))
    expect([allowed('HTTPS://host/m.mar'), allowed('http://host/m.mar')]).toEqual([true, true])
    const others = ['s3://host/m.mar', 'xhttp://host/m.mar', 'file:///m.mar']
    expect(others.map(allowed)).toEqual([false, false, false])
  })
})

test('a number may have its greatest value', () => {
  const { settings } = settingsOf({ file: 'min_free_disk=9007199254740991\n' })
  expect(settings.minFreeDisk).toBe(Number.MAX_SAFE_INTEGER)
})

describe('precedence', () => {
  const file = 'model_store=/from-file\njob_queue_size=7\ntoken_expiration_min=1\n'
  const flags = [{ name: 'model_store', text: '/from-flag', origin: '--model-store' }]
  const env = { TS_MODEL_STORE: '/from-env', TS_JOB_QUEUE_SIZE: '9', TS_TOKEN_EXPIRATION_TIME_MIN: '2.5' }

  test('flags override the file', () => {
    const { settings, origins } = settingsOf({ file, flags, env })
    expect(settings).toMatchObject({ modelStore: '/from-flag', jobQueueSize: 7, tokenExpirationMin: 1 })
    expect(origins).toMatchObject({ modelStore: '--model-store', jobQueueSize: 'config.properties:2' })
  })

  test('variables override both with enable_envvars_config=true', () => {
    const { settings, origins } = settingsOf({ file: `${file}enable_envvars_config=TRUE`, flags, env })
    expect(settings).toMatchObject({ modelStore: '/from-env', jobQueueSize: 9, tokenExpirationMin: 2.5 })
    expect(origins.modelStore).toBe('environment variable TS_MODEL_STORE')
  })

  test('TS_ALLOWED_URLS counts only with use_env_allowed_urls=true', () => {
    const allowed = { TS_ALLOWED_URLS: 's3://.*' }
    const on = 'enable_envvars_config=true\n'
    const sources = (text: string): string[] =>
      settingsOf({ file: text, env: allowed }).settings.allowedUrls.map(String)
    expect(sources(on)).toEqual(sources(''))
    expect(sources(`${on}use_env_allowed_urls=true`)).toEqual(['/^(?:s3:\\/\\/.*)$/i'])
  })

  test('the switch is a variable too, and no file is needed', () => {
    const env = { TS_JOB_QUEUE_SIZE: '9' }
    expect(settingsOf({ env }).settings.jobQueueSize).toBe(100)
    expect(settingsOf({ env: { ...env, TS_ENABLE_ENVVARS_CONFIG: 'true' } }).settings.jobQueueSize).toBe(9)
  })

  test('LOG_LOCATION and TEMP always count', () => {
    const { settings } = settingsOf({ env: { LOG_LOCATION: '/var/log/ts', TEMP: '/scratch' } })
    expect(settings).toMatchObject({ logLocation: '/var/log/ts', tempDir: '/scratch' })
  })

  test('an empty value leaves the default', () => {
    expect(settingsOf({ file: 'job_queue_size=\nload_models=' }).settings.jobQueueSize).toBe(100)
  })

  test('the last of two lines counts', () => {
    expect(settingsOf({ file: 'job_queue_size=3\njob_queue_size=4' }).settings.jobQueueSize).toBe(4)
  })
})

describe('values', () => {
  test('load_models is all, or names and locations', () => {
    const models = (text: string): unknown => settingsOf({ file: `load_models=${text}` }).settings.loadModels
    expect(models('ALL')).toBe('all')
    expect(models('standalone')).toEqual([])
    expect(models('a.mar, b=c.mar,,http://h/x.mar?v=1,b=http://h/y?z=2')).toEqual([
      { location: 'a.mar' },
      { name: 'b', location: 'c.mar' },
      { location: 'http://h/x.mar?v=1' },
      { name: 'b', location: 'http://h/y?z=2' },
    ])
  })

  test('models is JSON; fields of TorchServe without a meaning here are dropped', () => {
    const json = '{"bert":{"1.0":{"minWorkers":1,"maxWorkers":2,"marName":"bert.mar","responseTimeout":5}}}'
    expect(settingsOf({ file: `models=${json}` }).settings.models).toEqual({
      bert: { '1.0': { minWorkers: 1, maxWorkers: 2, responseTimeout: 5 } },
    })
  })

  test('debug=true is the log level debug', () => {
    expect(settingsOf({ file: 'debug=true' }).settings.logLevel).toBe('debug')
  })

  test('blacklist_env_vars matches whole names', () => {
    const { blacklistEnvVars } = settingsOf({ file: 'blacklist_env_vars=AWS_.*|SECRET' }).settings
    expect(['AWS_KEY', 'MY_AWS_KEY', 'SECRETS'].map((name) => blacklistEnvVars?.test(name))).toEqual([
      true,
      false,
      false,
    ])
  })
})

describe('a mistake is one line that names place, key, value and what it must be', () => {
  test.each([
    ['min_free_disk=9007199254740992', 'min_free_disk must be a whole number from 0 to 9007199254740991'],
    ['job_queue_size=many', 'job_queue_size must be a whole number from 1 to 2147483647, found many'],
    ['job_queue_size=0', 'job_queue_size must be a whole number from 1 to 2147483647'],
    ['job_queue_size=1.5', 'job_queue_size must be a whole number from 1 to 2147483647'],
    ['grpc_inference_port=65536', 'grpc_inference_port must be a whole number from 0 to 65535'],
    ['default_response_timeout=0', 'default_response_timeout must be a number of seconds'],
    ['default_queue_timeout=9999999', 'default_queue_timeout must be a number of seconds'],
    ['enable_model_api=yes', 'enable_model_api must be true or false, found yes'],
    ['log_files=mylog', 'log_files must be none, or a comma-separated list of access_log, ts_log'],
    ['metrics_mode=csv', 'metrics_mode must be one of log, prometheus, legacy'],
    ['inference_address=8080', 'inference_address must be http://host:port, https://host:port or unix:/path'],
    ['grpc_inference_address=a b', 'grpc_inference_address must be a host name or an IP address'],
    ['allowed_urls=http://(', 'allowed_urls must be a comma-separated list of regular expressions'],
    ['blacklist_env_vars=a)|(b', 'blacklist_env_vars must be a regular expression'],
    ['load_models=a=', 'load_models must be all, or a comma-separated list of [name=]location'],
    ['models={"a":', 'models must be JSON of the form'],
    ['models={"a":{"1":{"batchSize":"2"}}}', '(see a/1/batchSize)'],
    ['models={"a":{"1":{"minWorkers":2,"maxWorkers":1}}}', '(a/1: minWorkers must be at most maxWorkers)'],
    [
      'models={"a":{"1":{"batchSise":2}}}',
      'models must be JSON of the form {"name": {"version": {"minWorkers": 1}}}, found {"a":{"1":{"batchSise":2}}} (a/1: unknown field batchSise: did you mean batchSize?)',
    ],
    ['models={"a":{"1":{"defaultVersion":1}}}', '(see a/1/defaultVersion)'],
    ['cors_allowed_origin=a\\nb', 'cors_allowed_origin must be a valid value of an HTTP header'],
    ['metrics_address=http://127.0.0.1:8080', 'metrics_address must differ from inference_address'],
    ['enable_grpc_ssl=maybe', 'enable_grpc_ssl must be true or false'],
    ['job_queue_sise=5', 'unknown key job_queue_sise: did you mean job_queue_size?'],
    ['JOB_QUEUE_SIZE=5', 'unknown key JOB_QUEUE_SIZE: did you mean job_queue_size?'],
    ['model=x', 'unknown key model: did you mean models?'],
    ['model_store=$$NOT_SET$$', 'model_store: Invalid Environment Variable NOT_SET'],
    ['a=\\u12', 'config.properties: malformed'],
  ])('%s', (line, message) => {
    const text = configError(() => settingsOf({ file: `# first\n${line}\n` }))
    expect(text).toContain(message)
    expect(text).toMatch(/^config\.properties(:2)?: /)
    expect(text.split('\n')).toHaveLength(1)
  })

  test('of a flag or a variable, its name is given', () => {
    const flags = [{ name: 'load_models', text: '=', origin: '--models' }]
    expect(configError(() => settingsOf({ flags }))).toMatch(/^--models: load_models must be .*, found =$/)
    const env = { TS_JOB_QUEUE_SIZE: 'x' }
    expect(configError(() => settingsOf({ file: 'enable_envvars_config=true', env }))).toMatch(
      /^environment variable TS_JOB_QUEUE_SIZE: job_queue_size must be .*, found x$/,
    )
  })

  test('all of them are told at once, in their order', () => {
    const file = 'max_request_size=-3\nmodel_store=here\njob_queue_size=many\n'
    const flags = [{ name: 'load_models', text: '=', origin: '--models' }]
    expect(configError(() => settingsOf({ file, flags })).split('; ')).toEqual([
      expect.stringMatching(/^config\.properties:1: max_request_size must be .*, found -3$/),
      expect.stringMatching(/^config\.properties:3: job_queue_size must be .*, found many$/),
      expect.stringMatching(/^--models: load_models must be .*, found =$/),
    ])
  })

  test('a long value is cut', () => {
    const text = configError(() => settingsOf({ file: `job_queue_size=${'x'.repeat(10_000)}` }))
    expect(text.length).toBeLessThan(300)
  })
})

test.each([
  [{ file: 'ts_open_inference_protocol=true' }, true],
  [{ env: { TS_OPEN_INFERENCE_PROTOCOL: 'oip' } }, true],
  [{ file: 'ts_open_inference_protocol=true', env: { TS_OPEN_INFERENCE_PROTOCOL: 'v1' } }, false],
  [{ file: 'ts_open_inference_protocol=true', env: { TS_OPEN_INFERENCE_PROTOCOL: '' } }, true],
])('the variable of the Open Inference Protocol counts without a switch: %j', (sources, on) => {
  expect(settingsOf(sources).settings.openInferenceProtocol).toBe(on)
})

test.each([
  [{}, false],
  [{ file: 'allowed_urls=http://.*' }, true],
  [{ env: { TS_ALLOW_PRIVATE_URLS: 'true' } }, true],
  [{ file: 'allowed_urls=http://.*', env: { TS_ALLOW_PRIVATE_URLS: 'false' } }, false],
])('the variable for models from private addresses counts without a switch: %j', (sources, on) => {
  expect(settingsOf(sources).settings.allowPrivateUrls).toBe(on)
})

describe('keys that do nothing', () => {
  test('each key of TorchServe without a meaning is accepted with one warning', () => {
    const file = INERT_KEYS.map(({ name }) => `${name}=false`).join('\n')
    const { warnings } = settingsOf({ file })
    expect(warnings).toHaveLength(INERT_KEYS.length)
    for (const { name, reason } of INERT_KEYS) {
      expect(
        warnings.filter((warning) => warning.includes(`: ${name} has no effect here: ${reason}`)),
      ).toHaveLength(1)
    }
  })

  test('no key is in both tables', () => {
    const known = new Set<string>(Object.values(KEYS).map(({ name }) => name))
    expect(INERT_KEYS.filter(({ name }) => known.has(name))).toEqual([])
  })

  test('an unknown key is ignored with a warning', () => {
    expect(settingsOf({ file: 'NUM_WORKERS=1' }).warnings).toEqual([
      'config.properties:1: unknown key NUM_WORKERS is ignored',
    ])
  })

  test('metrics_mode is taken in any letter case', () => {
    const { settings, warnings } = settingsOf({ file: 'metrics_mode=LEGACY' })
    expect([settings.metricsMode, warnings]).toEqual(['legacy', []])
  })

  test('log_files takes a list of names, or none', () => {
    expect(settingsOf({ file: 'log_files=access_log, ts_log' }).settings.logFiles).toEqual([
      'access_log',
      'ts_log',
    ])
    expect(settingsOf({ file: 'log_files=none' }).settings.logFiles).toEqual([])
  })
})

describe('whatever the file says, it is settings or one line', () => {
  const name = fc.oneof(
    fc.constantFrom(...Object.values(KEYS).map((spec) => spec.name)),
    fc.constantFrom(...INERT_KEYS.map((key) => key.name)),
    fc.string({ unit: 'grapheme' }),
    fc.constantFrom('__proto__', 'constructor', 'toString'),
  )
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.integer().map(String),
    fc.json(),
    fc.constantFrom(
      'true',
      'false',
      '$$HOME$$',
      'http://a:1',
      '{"__proto__":{"1":{}}}',
      '{"a":{"__proto__":1}}',
    ),
  )
  const file = fc
    .array(
      fc.oneof(
        fc.tuple(name, value).map(([k, v]) => `${k}=${v}`),
        fc.string({ unit: 'binary' }),
      ),
    )
    .map((lines) => lines.join('\n'))

  test('property', () => {
    fc.assert(
      fc.property(file, fc.dictionary(name, value), (text, env) => {
        try {
          const { settings } = settingsOf({ file: text, env })
          expect(Object.keys(settings)).toEqual(Object.keys(KEYS))
        } catch (error) {
          expect(error).toBeInstanceOf(ServeError)
          expect(error).toMatchObject({ code: 'CONFIG' })
          expect((error as ServeError).message).not.toMatch(/[\u0000-\u001f\u2028\u2029]/)
        }
      }),
      { numRuns: 500 },
    )
  })
})

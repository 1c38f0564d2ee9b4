import { resolve } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { fillWrapper } from '../../frontend/config/worker-wrapper.ts'
import { resolveModelSettings } from '../../frontend/models/resolve-model-settings.ts'
import { configError, settingsOf } from './support.ts'

const wrapperOf = (text: string): readonly string[] =>
  settingsOf({ file: `worker_wrapper=${text}` }).settings.workerWrapper

describe('worker_wrapper', () => {
  test('is words divided by blanks, or a JSON list of words', () => {
    expect(wrapperOf('')).toEqual([])
    expect(wrapperOf('[]')).toEqual([])
    expect(wrapperOf('nice  -n 5')).toEqual(['nice', '-n', '5'])
    expect(wrapperOf('["env", "A=two words", "$HOME"]')).toEqual(['env', 'A=two words', '$HOME'])
    expect(wrapperOf('bin/wrap {worker_dir}')).toEqual([resolve('bin/wrap'), '{worker_dir}'])
  })

  test.each([
    ['bwrap --bind {model} {worker_dir}', 'unknown placeholder {model}; known are {model_dir}, {work_dir}, '],
    ['{model_dir}/wrap', 'its first word must be a program'],
    ['["a", 1]', 'must be a command: a JSON list of words, or words divided by blanks, found ["a", 1]'],
    ['["a"', 'must be a command'],
  ])('%s is refused', (text, message) => {
    const error = configError(() => wrapperOf(text))
    expect(error).toMatch(/^config\.properties:1: worker_wrapper must be a command/)
    expect(error).toContain(message)
  })

  test('has placeholders anywhere in its words, and what they stand for has none', () => {
    const values = { model_dir: '/m {work_dir}', work_dir: '/w', worker_dir: '/s', server_dir: '/p' }
    expect(fillWrapper(['a', '--bind={model_dir}:{worker_dir}', '{server_dir}'], values)).toEqual([
      'a',
      '--bind=/m {work_dir}:/s',
      '/p',
    ])
  })

  test('can be set for a version, and no model sets it', () => {
    const models = '{"m":{"1.0":{"workerWrapper":[]},"2.0":{"workerWrapper":"nice -n 5"}}}'
    const { settings } = settingsOf({ file: `worker_wrapper=env A=1\nmodels=${models}` })
    const wrapper = (version?: string): readonly string[] => {
      const yaml = { workerWrapper: ['evil'], worker_wrapper: 'evil' }
      const configured = version === undefined ? {} : settings.models['m']![version]!
      return resolveModelSettings({}, yaml, configured, settings).settings.workerWrapper
    }
    expect(wrapper()).toEqual(['env', 'A=1'])
    expect(wrapper('1.0')).toEqual([])
    expect(wrapper('2.0')).toEqual(['nice', '-n', '5'])
  })

  test.each([
    ['{"workerWrapper":"a {x}"}', 'm/1.0/workerWrapper: unknown placeholder {x}'],
    ['{"worker_wrapper":"a"}', 'the field is workerWrapper'],
  ])('%s is refused in models', (version, message) => {
    const error = configError(() => settingsOf({ file: `models={"m":{"1.0":${version}}}` }))
    expect(error).toContain(message)
  })
})

describe('a key that confined workers', () => {
  test.each([
    'sandbox=strict',
    'sandbox=STRICT',
    'worker_network=false',
    'worker_memory=1000',
    'worker_processes=10',
    'worker_open_files=64',
  ])('%s is refused, and worker_wrapper named', (line) => {
    expect(configError(() => settingsOf({ file: line }))).toBe(
      `config.properties:1: ${line} is not supported: confine workers with worker_wrapper (docs/worker-wrapper.md)`,
    )
    const [key, value] = line.split('=') as [string, string]
    const env = { TS_ENABLE_ENVVARS_CONFIG: 'true', [`TS_${key.toUpperCase()}`]: value }
    expect(configError(() => settingsOf({ env }))).toContain('worker_wrapper')
  })

  test.each([
    'sandbox=off',
    'sandbox=default',
    'sandbox_by_model=true',
    'sandbox_read=/data',
    'sandbox_write=/data',
    'worker_env=A,B_*',
    'model_env=A',
    'worker_network=true',
  ])('%s, which only loosened, has no effect and is told', (line) => {
    const { warnings } = settingsOf({ file: line })
    expect(warnings).toEqual([
      expect.stringMatching(/^config\.properties:1: \w+ has no effect: workers have the rights/),
    ])
  })
})

describe('the section sandbox of a model', () => {
  const { settings } = settingsOf({})
  const read = (sandbox: unknown): string[] => resolveModelSettings({}, { sandbox }, {}, settings).warnings

  test.each([
    ['strict'],
    [{ mode: 'strict' }],
    [{ network: false }],
    [{ memory: 1 }],
    [{ processes: 1 }],
    [{ openFiles: 64, env: ['A'] }],
    [{ other: 1 }],
    [['strict']],
  ])('%j is refused, and worker_wrapper named', (section) => {
    expect(() => read(section)).toThrow(
      expect.objectContaining({
        code: 'INVALID_MODEL',
        message:
          'sandbox in model-config.yaml is not supported: confine workers with worker_wrapper (docs/worker-wrapper.md)',
      }),
    )
  })

  test.each([
    ['off'],
    [false],
    ['default'],
    [{ mode: 'off', network: true, env: ['A'], read: ['/a'], write: ['/b'], headers: ['cookie'] }],
  ])('%j, which only loosened, has no effect and is told', (section) => {
    expect(read(section)).toEqual([expect.stringMatching(/^sandbox has no effect: .*handler_credentials/)])
  })
})

test('handler_credentials names headers with credentials that handlers get, and no model does', () => {
  const headers = (file: string): string[] => {
    const { settings } = settingsOf({ file })
    const yaml = { sandbox: { headers: ['authorization'] } }
    return [...resolveModelSettings({}, yaml, {}, settings).settings.credentialHeaders]
  }
  expect(headers('')).toEqual([])
  expect(headers('handler_credentials=Authorization, cookie')).toEqual(['authorization', 'cookie'])
  expect(() => headers('handler_credentials=accept')).toThrow('a comma-separated list of authorization,')
})

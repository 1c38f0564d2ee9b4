import { afterEach, describe, expect, test } from '@jest/globals'
import { inheritedEnv } from '../../frontend/config/inherited-env.ts'

const BEFORE = { ...process.env }

afterEach(() => {
  process.env = { ...BEFORE }
})

function inherits(variables: Record<string, string>, named: string[] = [], blacklist?: RegExp): string[] {
  process.env = { ...variables }
  return Object.keys(inheritedEnv(blacklist, named)).sort()
}

describe('the environment that workers inherit', () => {
  test('is what the system and the libraries of models use', () => {
    const usual = {
      PATH: '/bin',
      LANG: 'C',
      LC_ALL: 'C',
      CUDA_HOME: '/c',
      OMP_NUM_THREADS: '1',
      HF_HOME: '/h',
    }
    expect(inherits({ ...usual, TOKENIZERS_PARALLELISM: 'true', PYTHONPATH: '/p' })).toEqual(
      [...Object.keys(usual), 'PYTHONPATH', 'TOKENIZERS_PARALLELISM'].sort(),
    )
  })

  test('has no secret of the server, not even one whose name begins as a usual one', () => {
    const secrets = {
      OPENAI_API_KEY: 'x',
      AWS_SECRET_ACCESS_KEY: 'x',
      TS_KEYSTORE_PASS: 'x',
      DATABASE_URL: 'x',
      HF_TOKEN: 'x',
      NODE_AUTH_TOKEN: 'x',
      NVIDIA_API_KEY: 'x',
      https_proxy: 'http://me:password@proxy:3128',
    }
    expect(inherits(secrets)).toEqual([])
  })

  test('has what the operator names, unless it is forbidden', () => {
    const env = { OPENAI_API_KEY: 'x', AWS_REGION: 'x', AWS_KEY: 'x', OTHER: 'x' }
    expect(inherits(env, ['OPENAI_API_KEY'])).toEqual(['OPENAI_API_KEY'])
    expect(inherits(env, ['AWS_*'])).toEqual(['AWS_KEY', 'AWS_REGION'])
    expect(inherits(env, ['*'], /^AWS_.*$/)).toEqual(['OPENAI_API_KEY', 'OTHER'])
  })
})

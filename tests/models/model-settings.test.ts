import { describe, expect, test } from '@jest/globals'
import { settingsOf as effectiveSettings } from '../../frontend/models/build-model.ts'
import type { LocatedModel } from '../../frontend/models/located-model.ts'
import type { ModelSettings } from '../../frontend/models/model-settings.ts'
import { resolveModelSettings } from '../../frontend/models/resolve-model-settings.ts'
import { workersThatFit } from '../../frontend/models/device-settings.ts'
import type { RegisterRequest } from '../../frontend/models/operations.ts'
import type { VersionSettings } from '../../frontend/config/version-settings.ts'
import { settingsOf } from '../config/support.ts'

interface Sources {
  call?: Partial<RegisterRequest>
  configured?: VersionSettings
  file?: string
  gpus?: number
}

function resolve(
  yaml: Record<string, unknown>,
  { call = {}, configured = {}, file = '', gpus = 0 }: Sources = {},
): { settings: ModelSettings; warnings: string[] } {
  return resolveModelSettings(call, yaml, configured, settingsOf({ file }).settings, gpus)
}

/**
 * Every key of model-config.yaml that TorchServe's frontend reads (ModelConfig.java), with a value of the
 * right type.
 */
const KEYS: Readonly<Record<string, unknown>> = {
  minWorkers: 2,
  maxWorkers: 2,
  batchSize: 2,
  maxBatchDelay: 2,
  responseTimeout: 2,
  startupTimeout: 2,
  deviceType: 'cpu',
  deviceIds: [0],
  parallelType: 'tp',
  parallelLevel: 2,
  torchrun: { 'nproc-per-node': 2 },
  maxRetryTimeoutInSec: 2,
  clientTimeoutInMills: 2,
  jobQueueSize: 2,
  useJobTicket: true,
  continuousBatching: true,
  sequenceBatching: true,
  asyncCommunication: true,
  useVenv: true,
  sequenceMaxIdleMSec: 2,
  sequenceTimeoutMSec: 2,
  maxNumSequence: 2,
  maxSequenceJobQueueSize: 2,
}

describe('model-config.yaml', () => {
  test.each(Object.keys(KEYS))('%s of the wrong type is one warning, and the default stays', (key) => {
    const { settings, warnings } = resolve({ [key]: { what: 'is this' } }, { gpus: 1 })
    if (key === 'torchrun') return // a map is its right type
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).toMatch(new RegExp(`^${key}\\b`))
    expect(settings).toEqual(resolve({}, { gpus: 1 }).settings)
  })

  test.each(Object.entries(KEYS))('%s works, or warns once that it does not', (key, value) => {
    const base = { maxWorkers: 5, parallelType: 'pp', parallelLevel: 3, sequenceMaxIdleMSec: 1000 }
    const { settings, warnings } = resolve({ ...base, [key]: value }, { gpus: 1 })
    const effect = JSON.stringify(settings) !== JSON.stringify(resolve(base, { gpus: 1 }).settings)
    expect(warnings.filter((line) => line.startsWith(key))).toHaveLength(effect ? 0 : 1)
  })

  test('what is not for the frontend is the handler’s', () => {
    expect(resolve({ handler: { profile: true }, vllm_engine_config: 3, pt2: {} }).warnings).toEqual([])
  })

  test.each([
    [
      { minWorkers: 0, maxWorkers: 3 },
      { minWorkers: 1, maxWorkers: 3 },
    ],
    [
      { minWorkers: -4, maxWorkers: 3 },
      { minWorkers: 1, maxWorkers: 3 },
    ],
    [{ minWorkers: 2 }, { minWorkers: 2, maxWorkers: 2 }],
    [{ batchSize: 0 }, { batchSize: 1 }],
    [{ maxBatchDelay: -1 }, { maxBatchDelay: 100 }],
    [{ responseTimeout: 0 }, { responseTimeout: 120 }],
    [{ deviceType: 'GPU' }, { deviceType: 'gpu' }],
    [{ deviceIds: [0, 1] }, { deviceIds: [0, 1] }],
    [{ deviceIds: [0, 2] }, { deviceIds: undefined }],
    [{ deviceIds: [] }, { deviceIds: undefined }],
    [{ parallelLevel: 2 }, { parallelType: '', parallelLevel: 0 }],
    [
      { parallelType: 'TP', parallelLevel: 2 },
      { parallelType: 'tp', parallelLevel: 2 },
    ],
    [{ parallelType: 'pp', parallelLevel: 4, torchrun: { 'nproc-per-node': 2 } }, { parallelLevel: 2 }],
    [{ torchrun: { OMP_NUMBER_THREADS: 3 } }, { threads: 3 }],
    [{ threads: 2, torchrun: { OMP_NUMBER_THREADS: 3 } }, { threads: 2 }],
  ])('%j means %j', (yaml, expected) => {
    expect(resolve(yaml, { gpus: 2 }).settings).toMatchObject(expected)
  })

  test('of torchrun’s parameters those of several machines warn once each', () => {
    const { warnings } = resolve({
      torchrun: { nnodes: 2, 'rdzv-backend': 'c10d', 'node-rank': 1, 'nproc-per-node': 2 },
    })
    expect(warnings.map((line) => line.split(' ')[0])).toEqual([
      'torchrun.rdzv-backend',
      'torchrun.node-rank',
      'torchrun.nnodes',
    ])
  })

  test('deviceType gpu without a GPU is cpu', () => {
    expect(resolve({ deviceType: 'gpu' }).settings.deviceType).toBe('cpu')
    expect(resolve({}, { gpus: 1 }).settings.deviceType).toBe('gpu')
  })
})

describe('precedence', () => {
  const yaml = {
    minWorkers: 2,
    maxWorkers: 3,
    batchSize: 4,
    maxBatchDelay: 5,
    responseTimeout: 6,
    startupTimeout: 7,
  }
  const configured = {
    minWorkers: 12,
    maxWorkers: 13,
    batchSize: 14,
    maxBatchDelay: 15,
    responseTimeout: 16,
    startupTimeout: 17,
  }
  const file = 'default_response_timeout=36\ndefault_startup_timeout=37\n'

  test('the register call wins over everything', () => {
    const call = {
      initialWorkers: 22,
      batchSize: 24,
      maxBatchDelay: 25,
      responseTimeout: 26,
      startupTimeout: 27,
    }
    expect(resolve(yaml, { call, configured, file }).settings).toMatchObject({
      ...{
        minWorkers: 22,
        maxWorkers: 22,
        batchSize: 24,
        maxBatchDelay: 25,
        responseTimeout: 26,
        startupTimeout: 27,
      },
    })
  })

  test('time limits that nothing sets are those of the kind of model', () => {
    const limits = (yaml: object, file = '', limit?: number) => {
      const settings = settingsOf({ file }).settings
      const resolved = resolveModelSettings({}, { ...yaml }, {}, settings, 0, 'node', limit).settings
      const { queue, firstResponse, gap } = resolved.timeouts
      return [resolved.responseTimeout * 1000, queue, firstResponse, gap].map((ms) => ms / 1000)
    }
    expect(limits({})).toEqual([120, 120, 120, 120])
    expect(limits({}, '', 600)).toEqual([600, 600, 600, 600])
    expect(limits({ queueTimeout: 1, gapTimeout: 2 }, '', 600)).toEqual([600, 1, 600, 2])
    const keys = 'default_response_timeout=120\ndefault_queue_timeout=0\n'
    expect(limits({}, keys, 600)).toEqual([120, 0, 120, 120])
    expect(limits({ responseTimeout: 3 }, keys, 600)).toEqual([3, 0, 3, 3])
  })

  test('then model-config.yaml, then the models key, then the defaults', () => {
    expect(resolve(yaml, { configured, file }).settings).toMatchObject(yaml)
    expect(resolve({}, { configured, file }).settings).toMatchObject(configured)
    expect(resolve({}, { file }).settings).toMatchObject({
      batchSize: 1,
      maxBatchDelay: 100,
      responseTimeout: 36,
      startupTimeout: 37,
    })
  })

  test('a file that does not name a timeout leaves it alone', () => {
    const call = { responseTimeout: 26 }
    expect(resolve({ batchSize: 2 }, { call, configured: {}, file }).settings).toMatchObject({
      responseTimeout: 26,
      startupTimeout: 37,
    })
  })
})

test.each([
  [{ maxWorkers: 1 }, {}, true, 1],
  [{ maxWorkers: 3 }, {}, true, 2],
  [{ maxWorkers: 1 }, {}, false, 1],
  [{}, { maxWorkers: 1 }, true, 1],
  [{}, {}, true, 2],
])('of %j and %j, with a default of 2, at start %s: %i workers', (modelConfig, configured, start, count) => {
  const models = JSON.stringify({ m: { '1.0': configured } })
  const { settings } = settingsOf({ file: `default_workers_per_model=2\nmodels=${models}\n` })
  const manifest = { model: {} }
  const prepared = { modelConfig, manifest, runtime: 'node', version: '1.0' } as LocatedModel['prepared']
  const located = { prepared, name: 'm' } as LocatedModel
  const made = effectiveSettings({ url: 'm', synchronous: true }, located, start, { settings, warn: fail })
  expect([made.minWorkers, made.maxWorkers]).toEqual([count, count])
})

function fail(warning: string): never {
  throw new Error(warning)
}

test('rank groups are as many as there are GPUs for', () => {
  const group = resolve({ parallelType: 'tp', parallelLevel: 2 }, { gpus: 5 }).settings
  expect(workersThatFit(group, 5, 'm')).toBe(2)
  expect(() => workersThatFit(group, 1, 'm')).toThrow('No enough gpu devices for model:m parallelLevel:2')
  const onCpu = resolve({ parallelType: 'tp', parallelLevel: 2 }).settings
  expect(workersThatFit(onCpu, 0, 'm')).toBe(Infinity)
})

test('what is wrong in the tensors that a model declares is told', () => {
  const { warnings } = resolve({
    validateInputs: 'no',
    openInference: {
      inputs: [{ name: 'x', datatype: 'float', shape: [1] }, { name: 'y' }],
      outputs: [{ name: 'z', datatype: 'FP32', shape: 'any' }],
      input: [],
      mapping: 'part',
    },
  })
  expect(warnings).toEqual([
    'validateInputs must be true or false, found "no"; the default is used',
    'openInference: mapping must be one of parts, json, found "part"; the default is used',
    'openInference: input is not a key of the server, so only the handler sees it: did you mean inputs?',
    expect.stringMatching(
      /^openInference: datatype of inputs\[0\] \(x\) must be one of BOOL, .*, found float/,
    ),
    'openInference: inputs[1] must have a name and a datatype; it is ignored',
    'openInference: shape of outputs[0] (z) must be a list of integers, -1 for any size, found "any"; it is not checked',
  ])
})

test('a key that looks like one of the server is told; other keys belong to the handler', () => {
  const { warnings } = resolve({ batchSiz: 4, minworkers: 1, greeting: 'hi', handler: { threads: 1 } })
  expect(warnings).toEqual([
    'batchSiz is not a key of the server, so only the handler sees it: did you mean batchSize?',
    'minworkers is not a key of the server, so only the handler sees it: did you mean minWorkers?',
  ])
})

import { expect, test } from '@jest/globals'
import type { Model } from '../../frontend/models/model.ts'
import { threadsOf, withThreads } from '../../frontend/workers/worker-env.ts'

interface Case {
  minWorkers?: number
  maxWorkers?: number
  /** Ranks of each worker. */
  ranks?: number
  scales?: boolean
  /** Workers that it has. */
  wanted?: number
  gpu?: boolean
  threads?: number
}

function model({
  minWorkers = 1,
  maxWorkers = minWorkers,
  ranks = 0,
  scales,
  wanted = minWorkers,
  gpu,
  threads,
}: Case): Model {
  const settings = {
    threads,
    deviceType: gpu === true ? 'gpu' : 'cpu',
    parallelLevel: ranks,
    scaling: scales === true ? {} : undefined,
  }
  return { minWorkers, maxWorkers, settings, workers: { wanted } } as unknown as Model
}

test.each<[string, number, Case, Case[], number]>([
  ['one worker has all cores of a small machine', 2, {}, [], 2],
  ['from four cores on, one is left for the server', 4, {}, [], 3],
  ['workers share', 16, { minWorkers: 4 }, [], 3],
  ['also with those of other models', 16, { minWorkers: 2 }, [{ minWorkers: 3 }], 3],
  ['nobody has less than one', 2, { minWorkers: 4 }, [], 1],
  ['ranks count as processes', 16, { minWorkers: 2, ranks: 2 }, [], 3],
  [
    'a model that scales counts with all workers that it may have',
    16,
    { maxWorkers: 5, scales: true },
    [],
    3,
  ],
  ['a model at zero counts for nothing', 16, {}, [{ minWorkers: 0, maxWorkers: 9, scales: true }], 15],
  ['until it is woken', 16, {}, [{ minWorkers: 0, maxWorkers: 4, scales: true, wanted: 1 }], 3],
  [
    'while it starts its first worker it counts itself',
    16,
    { minWorkers: 0, maxWorkers: 3, scales: true },
    [],
    5,
  ],
  ['a worker with a GPU has one', 16, { gpu: true }, [], 1],
  ['the threads of the model win', 16, { gpu: true, threads: 6 }, [], 6],
])('%s', (_title, cores, own, others, expected) => {
  const subject = model(own)
  expect(threadsOf(subject, [subject, ...others.map(model)], {}, cores)).toBe(expected)
})

test.each([
  ['4', 4],
  [' 3,2', 3],
  ['0', 15],
  ['many', 15],
])('OMP_NUM_THREADS=%j of the server wins over the share', (OMP_NUM_THREADS, expected) => {
  expect(threadsOf(model({}), [], { OMP_NUM_THREADS }, 16)).toBe(expected)
  expect(threadsOf(model({ threads: 2 }), [], { OMP_NUM_THREADS }, 16)).toBe(2)
})

test('a variable of the server stays, unless the model has its own number', () => {
  const env = { MKL_NUM_THREADS: '7', BLIS_NUM_THREADS: '', HOME: '/' }
  const names = ['OMP', 'OPENBLAS', 'BLIS', 'NUMEXPR', 'RAYON'].map((name) => `${name}_NUM_THREADS`)
  const others = [...names, 'VECLIB_MAXIMUM_THREADS', 'VIPS_CONCURRENCY', 'TORCHSERVE_TS_THREADS']
  const shares = Object.fromEntries(others.map((name) => [name, '3']))
  expect(withThreads(env, 3, model({}))).toEqual({ ...env, ...shares })
  expect(withThreads(env, 3, model({ threads: 3 }))).toEqual({ ...env, ...shares, MKL_NUM_THREADS: '3' })
})

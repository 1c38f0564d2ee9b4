import { expect, test } from '@jest/globals'
import type { Model } from '../../frontend/models/model.ts'
import { Repository } from '../../frontend/models/repository.ts'

interface Workers {
  wanted: number
  ready?: number
  healthy?: number
  /** When and why a worker last failed; undefined: never. */
  exits?: ([at: string, reason: string] | undefined)[]
}

async function entry({ wanted, ready = 0, healthy = 0, exits = [] }: Workers) {
  const described = exits.map((exit) => ({ lastExit: exit && { at: exit[0], reason: exit[1], stderr: [] } }))
  const workers = { wanted, ready, healthy, describe: () => described }
  const models = [{ name: 'm', version: '1.0', workers }] as unknown as Model[]
  const nothing = (): Promise<void> => Promise.resolve()
  const host = { registered: () => models, replace: () => Promise.reject(new Error()) }
  const repository = new Repository(
    { ...host, whenLoaded: nothing, giveUp: nothing, retire: nothing },
    {
      modelStore: undefined,
      maxArchiveFiles: 1,
    },
  )
  const index = await repository.index()
  return index.map(({ state, reason }) => [state, reason])
}

const early: [string, string] = ['2026-01-01T00:00:01.000Z', 'early']
const late: [string, string] = ['2026-01-01T00:00:02.000Z', 'late']

test.each<[string, Workers, [state: string, reason: string]]>([
  ['one that answers', { wanted: 2, ready: 1, healthy: 1, exits: [early, undefined] }, ['READY', '']],
  ['one without workers', { wanted: 0 }, ['UNAVAILABLE', 'the model has no workers; scale it']],
  ['one that loads for the first time', { wanted: 1, healthy: 1, exits: [undefined] }, ['LOADING', '']],
  ['one that is tried again', { wanted: 2, healthy: 2, exits: [undefined, early] }, ['LOADING', 'early']],
  ['one that was given up', { wanted: 2, exits: [early, late] }, ['UNAVAILABLE', 'late']],
  [
    'one whose second worker is still tried',
    { wanted: 2, healthy: 1, exits: [late, early] },
    ['LOADING', 'late'],
  ],
])('the index of a model says its state and why: %s', async (_what, workers, expected) => {
  expect(await entry(workers)).toEqual([expected])
})

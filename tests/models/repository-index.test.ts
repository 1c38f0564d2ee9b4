import { expect, test } from '@jest/globals'
import type { Model } from '../../frontend/models/model.ts'
import { Repository } from '../../frontend/models/repository.ts'

interface Workers {
  wanted: number
  ready?: number
  healthy?: number
  /** Why a worker last failed; undefined: none has. */
  failure?: string
}

async function entry({ wanted, ready = 0, healthy = 0, failure }: Workers) {
  const lastExit = failure === undefined ? undefined : { at: new Date(), publicCause: failure }
  const workers = { wanted, ready, healthy, lastExit }
  const models = [{ name: 'm', version: '1.0', workers }] as unknown as Model[]
  const nothing = (): Promise<void> => Promise.resolve()
  const host = {
    ...{ registered: () => models, replace: () => Promise.reject(new Error()) },
    ...{ failed: () => [], forget: () => Promise.resolve(false) },
  }
  const repository = new Repository(
    { ...host, whenLoaded: nothing, retire: nothing },
    {
      modelStore: undefined,
      maxArchiveFiles: 1,
    },
  )
  const index = await repository.index()
  return index.map(({ state, reason }) => [state, reason])
}

test.each<[string, Workers, [state: string, reason: string]]>([
  ['one that answers', { wanted: 2, ready: 1, healthy: 1, failure: 'it threw' }, ['READY', '']],
  ['one without workers', { wanted: 0 }, ['UNAVAILABLE', 'the model has no workers; scale it']],
  ['one that loads for the first time', { wanted: 1, healthy: 1 }, ['LOADING', '']],
  ['one that is tried again', { wanted: 2, healthy: 2, failure: 'it threw' }, ['LOADING', 'it threw']],
  ['one that was given up', { wanted: 2, failure: 'it threw' }, ['UNAVAILABLE', 'it threw']],
])('the index of a model says its state and why: %s', async (_what, workers, expected) => {
  expect(await entry(workers)).toEqual([expected])
})

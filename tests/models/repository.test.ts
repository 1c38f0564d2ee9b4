import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import type { Model } from '../../frontend/models/model.ts'
import type { ModelFailure } from '../../frontend/models/model-errors.ts'
import type { RegisterRequest } from '../../frontend/models/operations.ts'
import { Repository } from '../../frontend/models/repository.ts'
import { tempDir } from '../support/temp.ts'

interface Shape {
  url?: string
  version?: string
  pin?: string
  handlerOverride?: string
  loadedAtStartup?: boolean
  wanted?: number
  failure?: Partial<ModelFailure>
  /** Whether its files have changed; undefined: nobody knows its files. */
  changed?: boolean | undefined
}

let store: string
let models: Model[]
/** What the repository has the server do, in order. */
let done: unknown[]
let repository: Repository
/** What a load fails with; undefined: it does not. */
let failure: ServeError | undefined

/** A registered version of the model m, which the test describes. */
function model(shape: Shape = {}): Model {
  const {
    url = 'm',
    version = '1.0',
    pin,
    handlerOverride,
    loadedAtStartup = true,
    wanted = 1,
    failure,
  } = shape
  const changed = 'changed' in shape ? shape.changed : false
  const source = changed === undefined ? undefined : { areUnchanged: () => Promise.resolve(!changed) }
  const workers = { wanted, failure }
  const known = { name: 'm', url, version, pin, handlerOverride, loadedAtStartup, source, workers }
  return known as unknown as Model
}

beforeEach(() => {
  store = tempDir()
  models = []
  done = []
  failure = undefined
  mkdirSync(join(store, 'm'))
  writeFileSync(join(store, 'm', 'handler.mjs'), '')
  const host = {
    registered: () => models,
    whenLoaded: () => Promise.resolve(),
    replace: ({ url, handler, sha256 }: RegisterRequest, trusted: boolean) => {
      done.push(['replace', url, { handler, sha256, trusted }])
      if (failure !== undefined) return Promise.reject(failure)
      return Promise.resolve(model({ url }))
    },
    retire: ({ version }: Model) => {
      done.push(['retire', version])
      return Promise.resolve()
    },
    failed: () => [],
    forget: () => Promise.resolve(false),
  }
  repository = new Repository(host, { modelStore: store, maxArchiveFiles: 100 })
})

const loaded = ['replace', 'm', { handler: undefined, sha256: undefined, trusted: true }]

test.each<[string, Shape, boolean]>([
  ['serves from files that have not changed', {}, false],
  ['serves from files that have changed', { changed: true }, true],
  ['serves from files that nobody knows', { changed: undefined }, true],
  ['has no workers', { wanted: 0 }, true],
  ['was given up', { failure: { reason: 'died' } }, true],
])('a load of a model that %s (loads it: see the table)', async (_what, shape, loads) => {
  models = [model(shape)]
  await repository.load('m')
  expect(done).toEqual(loads ? [loaded] : [])
})

test('a load keeps the handler and the hash that the model was registered with', async () => {
  models = [model({ changed: true, handlerOverride: 'h.mjs', pin: 'a'.repeat(64) })]
  await repository.load('m')
  expect(done).toEqual([['replace', 'm', { handler: 'h.mjs', sha256: 'a'.repeat(64), trusted: true }]])
})

test.each<[string, Shape, boolean]>([
  ['the operator named', {}, true],
  ['a client registered', { loadedAtStartup: false }, false],
])('a path that %s is trusted accordingly when it is loaded again', async (_who, shape, trusted) => {
  models = [model({ ...shape, changed: true })]
  await repository.load('m')
  expect(done).toEqual([['replace', 'm', { handler: undefined, sha256: undefined, trusted }]])
})

test('an address is checked again by each load, also one that the operator named', async () => {
  const url = 'https://models.example/m.mar'
  rmSync(join(store, 'm'), { recursive: true })
  models = [model({ url, changed: undefined })]
  await repository.load('m')
  expect(done).toEqual([['replace', url, { handler: undefined, sha256: undefined, trusted: false }]])
})

test('a load ends a version whose files are gone, and no other', async () => {
  writeFileSync(join(store, 'elsewhere.mar'), '')
  models = [
    model(),
    model({ version: '2.0', url: 'gone.mar' }),
    model({ version: '3.0', url: 'https://models.example/m.mar' }),
    model({ version: '4.0', url: join(store, 'elsewhere.mar') }),
  ]
  await repository.load('m')
  expect(done).toEqual([['retire', '2.0']])
})

test.each<[string, ServeError, string]>([
  [
    'whose worker does not start',
    new ServeError('WORKER_START_FAILED', 'planted', { publicCause: 'the handler threw while it loaded' }),
    'not loaded: the handler threw while it loaded',
  ],
  ['without a handler', new ServeError('INVALID_MODEL', 'planted'), 'not loaded: it has no valid handler'],
  ['that is refused', new ServeError('UNTRUSTED_ARCHIVE', 'planted'), 'not loaded: its archive was refused'],
  ['that is damaged', new ServeError('INVALID_ARCHIVE', 'planted'), 'not loaded: its archive was refused'],
])(
  'the index says why the last load of a model failed, but not in its words: one %s',
  async (_what, error, reason) => {
    const reasons = async (): Promise<string[]> => (await repository.index()).map((each) => each.reason)
    expect(await reasons()).toEqual(['not loaded'])
    failure = error
    await expect(repository.load('m')).rejects.toThrow('planted')
    expect(await reasons()).toEqual([reason])
    failure = undefined
    await repository.load('m')
    expect(await reasons()).toEqual(['not loaded'])

    failure = error
    await expect(repository.load('m')).rejects.toThrow('planted')
    models = [model()]
    await repository.unload('m')
    models = []
    expect(await reasons()).toEqual(['not loaded'])
  },
)

test('of two archives with one name and version the second is not loaded, and both are named', async () => {
  const manifest = JSON.stringify({
    model: { modelName: 'm', modelVersion: '1.0', handler: 'handler.mjs' },
    runtime: 'node',
  })
  mkdirSync(join(store, 'evil', 'MAR-INF'), { recursive: true })
  writeFileSync(join(store, 'evil', 'MAR-INF', 'MANIFEST.json'), manifest)
  const load = async (): Promise<unknown> => repository.load('m').catch((error: unknown) => error)
  const message = (second: string, first: string): unknown => ({
    code: 'CONFLICT',
    message: `${second} is not loaded: ${first} has the same name and version, m 1.0. Remove one of them.`,
  })
  expect(await load()).toMatchObject(message('m', 'evil') as object)
  expect(done.map((each) => (each as unknown[])[1])).toEqual(['evil'])
  // What is loaded is never replaced by another archive.
  done = []
  models = [model()]
  expect(await load()).toMatchObject(message('evil', 'm') as object)
  expect(done).toEqual([])
})

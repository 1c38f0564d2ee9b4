import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { formatProperty, parseProperties } from '../../frontend/config/properties.ts'
import { SnapshotStore } from '../../frontend/config/snapshot-store.ts'
import type { ModelSnapshot } from '../../frontend/config/model-snapshot.ts'
import { tempDir } from '../support/temp.ts'
import { configError, settingsOf } from './support.ts'

const WORD = { defaultVersion: true, marName: 'word.mar', minWorkers: 1, maxWorkers: 1 }
const MODELS: ModelSnapshot['models'] = { word: { '1.0': WORD } }

function store(file = '', max?: number): { store: SnapshotStore; folder: string } {
  const logs = tempDir()
  return {
    store: new SnapshotStore(settingsOf({ file, env: { LOG_LOCATION: logs } }), max),
    folder: join(logs, 'config'),
  }
}

test('property: a written property is read back', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', minLength: 1 }), fc.string({ unit: 'binary' }), (name, value) => {
      // Blanks around a value are dropped by the reader of configuration files.
      fc.pre(name.trim() === name && value.trim() === value)
      expect(parseProperties(formatProperty(name, value), 'x', undefined)).toMatchObject([
        { name, text: value },
      ])
    }),
  )
})

test('a snapshot is a properties file of the settings and of the models, for its owner alone', async () => {
  const { store: snapshots, folder } = store(
    'job_queue_size=7\nmodel_store=models\nvmargs=-X:a=b\nload_models=all\n',
  )
  await snapshots.write('startup', { models: MODELS })
  const [name] = readdirSync(folder)
  expect(name).toMatch(/^\d{17}-startup\.cfg$/)
  const path = join(folder, name!)
  expect(statSync(path).mode & 0o777).toBe(0o600)
  const text = readFileSync(path, 'utf8')
  expect(text).toContain('vmargs=-X\\:a\\=b\n')
  const { settings } = settingsOf({ file: text })
  expect(settings).toMatchObject({ jobQueueSize: 7, modelStore: join(process.cwd(), 'models') })
  expect(settings.modelSnapshot).toMatchObject({ name, modelCount: 1, models: MODELS })
})

test('a model that was not loaded is written with its whole path', async () => {
  const { store: snapshots, folder } = store()
  const unloaded = ['./words', 'words.mar', 'https://models.example/words.mar']
  await snapshots.write('startup', { models: {}, unloaded: unloaded.map((location) => ({ location })) })
  const text = readFileSync(join(folder, readdirSync(folder)[0]!), 'utf8')
  const locations = settingsOf({ file: text }).settings.modelSnapshot!.unloaded!.map(
    ({ location }) => location,
  )
  expect(locations).toEqual([join(process.cwd(), 'words'), ...unloaded.slice(1)])
})

test('only the newest are kept, and files of others stay', async () => {
  const { store: snapshots, folder } = store('', 3)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'notes.cfg'), '')
  for (let count = 0; count < 5; count++) await snapshots.write('snapshot', { models: {} })
  await snapshots.write('shutdown', { models: MODELS })
  const names = readdirSync(folder).sort()
  expect(names.map((name) => name.replace(/^\d{17}-/, ''))).toEqual([
    ...['snapshot.cfg', 'snapshot.cfg', 'shutdown.cfg', 'notes.cfg'],
  ])
})

test('a new one is the newest by its name, also when the clock was set back', async () => {
  const { store: snapshots, folder } = store()
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, '29991231235959999-startup.cfg'), '')
  await Promise.all([
    snapshots.write('snapshot', { models: {} }),
    snapshots.write('shutdown', { models: {} }),
  ])
  expect(readdirSync(folder).sort()).toEqual([
    '29991231235959999-startup.cfg',
    '30000101000000000-snapshot.cfg',
    '30000101000000001-shutdown.cfg',
  ])
})

test('one of the same millisecond as the newest is newer by its name', async () => {
  const { store: snapshots, folder } = store()
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, '20300102030405006-startup.cfg'), '')
  const clock = jest.spyOn(Date, 'now').mockReturnValue(Date.UTC(2030, 0, 2, 3, 4, 5, 6))
  try {
    await snapshots.write('snapshot', { models: {} })
  } finally {
    clock.mockRestore()
  }
  expect(readdirSync(folder).sort().at(-1)).toBe('20300102030405007-snapshot.cfg')
})

test('one that cannot be written does not keep the next from being written', async () => {
  const { store: snapshots, folder } = store()
  writeFileSync(folder, 'no folder')
  await expect(snapshots.write('startup', { models: {} })).rejects.toThrow(folder)
  rmSync(folder)
  await snapshots.write('snapshot', { models: MODELS })
  expect(readdirSync(folder)).toEqual([expect.stringMatching(/-snapshot\.cfg$/)])
})

test('what TorchServe wrote is read, also without the fields of later versions', () => {
  const json = {
    name: 'x',
    modelCount: 1,
    created: 1,
    models: {
      m: {
        '1.0': {
          defaultVersion: true,
          marName: 'm.mar',
          minWorkers: 2,
          maxWorkers: 4,
          batchSize: 3,
          maxBatchDelay: 100,
          unknown: 1,
        },
      },
    },
  }
  const { settings } = settingsOf({
    file: formatProperty('model_snapshot', JSON.stringify(json, undefined, 2)),
  })
  expect(settings.modelSnapshot?.models['m']!['1.0']).toEqual({
    ...{
      defaultVersion: true,
      marName: 'm.mar',
      minWorkers: 2,
      maxWorkers: 4,
      batchSize: 3,
      maxBatchDelay: 100,
    },
  })
})

test.each(['{', '{"models":{"m":{"1":{}}}}', '{"models":[]}'])('%s is no snapshot', (text) => {
  expect(configError(() => settingsOf({ file: formatProperty('model_snapshot', text) }))).toMatch(
    /^config\.properties:1: model_snapshot must be JSON of the form/,
  )
})

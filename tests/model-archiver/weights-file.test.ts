import { readdirSync, readlinkSync, realpathSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { readSettings } from '../../handlers/gguf/settings.ts'
import { prepareModel } from '../../model-archiver/prepare.ts'
import { failure, tempFolder } from './temp.ts'

const PARTS = ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']

test('a model in parts is one model, by its first part', async () => {
  const folder = tempFolder({ [PARTS[0]!]: 'a', [PARTS[1]!]: 'b', 'other.gguf': 'c', 'handler.ts': 'd' })
  const model = await prepareModel(join(folder, PARTS[0]!), { tempDir: tempFolder() })
  const { modelDir, name, runtime, handlerProblem } = model
  expect([name, runtime, handlerProblem]).toEqual(['m', 'node', undefined])
  expect(readdirSync(modelDir).sort()).toEqual(PARTS)
  const real = PARTS.map((part) => join(realpathSync(folder), part))
  expect(PARTS.map((part) => readlinkSync(join(modelDir, part)))).toEqual(real)
  const manifest = { model: {} }
  const properties = { modelDir } as Parameters<typeof readSettings>[0]['properties']
  expect(readSettings({ manifest, modelConfig: {}, properties }).modelPath).toBe(join(modelDir, PARTS[0]!))
  await model.dispose()
  expect(readdirSync(folder)).toContain(PARTS[0])
})

test('a lone .gguf file has no pin', async () => {
  const folder = tempFolder({ 'm.gguf': 'a' })
  const options = { tempDir: tempFolder(), sha256: 'a'.repeat(64) }
  const { code, message } = await failure(prepareModel(join(folder, 'm.gguf'), options))
  expect([code, message]).toEqual([
    'UNTRUSTED_ARCHIVE',
    'm.gguf must be an archive, because it has a pin. Pack it with the archiver.',
  ])
})

test.each([
  ['a part', { 'm/m-00001-of-00002.gguf': 'a' }, 'm/m-00001-of-00002.gguf', 'm-00002-of-00002.gguf'],
  ['a part in a folder', { 'm/m-00001-of-00002.gguf': 'a' }, 'm', 'm-00002-of-00002.gguf'],
  [
    'the file that model-config.yaml names',
    { 'm/a.gguf': 'a', 'm/model-config.yaml': 'handler:\n  model_path: gone.gguf\n' },
    'm',
    'gone.gguf',
  ],
])(
  '%s of the weights that is missing ends the load before a worker starts',
  async (_what, files, at, name) => {
    const folder = tempFolder(files)
    expect(await failure(prepareModel(join(folder, at), { tempDir: tempFolder() }))).toEqual({
      code: 'INVALID_MODEL',
      message: `The model needs the file ${name}, which is not there`,
    })
  },
)

test('a link to weights that leads nowhere counts as missing', async () => {
  const folder = tempFolder()
  symlinkSync(join(folder, 'gone'), join(folder, 'm.gguf'))
  const { message } = await failure(prepareModel(folder, { tempDir: tempFolder() }))
  expect(message).toBe('The model needs the file m.gguf, which is not there')
})

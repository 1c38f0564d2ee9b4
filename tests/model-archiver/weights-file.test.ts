import { readdirSync, readlinkSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { readSettings } from '../../handlers/gguf/settings.ts'
import { prepareModel } from '../../model-archiver/prepare.ts'
import { failure, tempFolder } from './temp.ts'

const PARTS = ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf']

test('a model in parts is one model, by its first part', async () => {
  const folder = tempFolder({ [PARTS[0]!]: 'a', [PARTS[1]!]: 'b', 'other.gguf': 'c', 'handler.ts': 'd' })
  const model = await prepareModel(join(folder, PARTS[0]!), { tempDir: tempFolder() })
  const { modelDir, linked, name, runtime, handlerProblem } = model
  expect([name, runtime, handlerProblem]).toEqual(['m', 'node', undefined])
  expect(readdirSync(modelDir).sort()).toEqual(PARTS)
  const real = PARTS.map((part) => join(realpathSync(folder), part))
  expect(linked).toEqual(real)
  expect(PARTS.map((part) => readlinkSync(join(modelDir, part)))).toEqual(real)
  const manifest = { model: {} }
  const properties = { modelDir } as Parameters<typeof readSettings>[0]['properties']
  expect(readSettings({ manifest, modelConfig: {}, properties }).modelPath).toBe(join(modelDir, PARTS[0]!))
  await model.dispose()
  expect(readdirSync(folder)).toContain(PARTS[0])
})

test.each([
  [{ sha256: 'a'.repeat(64) }, 'it has a pin'],
  [{ signatures: { signers: [], required: true } }, 'require_signed_archives is set'],
])('a lone .gguf file passes no check that is for archives: %j', async (rules, why) => {
  const folder = tempFolder({ 'm.gguf': 'a' })
  const options = { tempDir: tempFolder(), rules } as Parameters<typeof prepareModel>[1]
  const { code, message } = await failure(prepareModel(join(folder, 'm.gguf'), options))
  expect([code, message]).toEqual([
    'UNTRUSTED_ARCHIVE',
    `m.gguf must be an archive, because ${why}. Pack it with the archiver.`,
  ])
})

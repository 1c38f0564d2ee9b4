import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parseHandlerEntry, formatHandlerEntry } from '../../model-archiver/handler-entry.ts'
import { readManifest, readModelConfig } from '../../model-archiver/manifest.ts'
import { isName } from '../../common/names.ts'
import { checkManifest } from '../../model-archiver/manifest-schema.ts'
import { defaultModelName, MODEL_NAME } from '../../model-archiver/model-names.ts'
import { failure, tempFolder } from './temp.ts'

const model = { modelName: 'm', modelVersion: '1.0', handler: 'handler.mjs' }

describe('a manifest', () => {
  test.each([
    [{}, 'Missing Model entry in manifest file.'],
    [{ model: null, runtime: 'node' }, 'Missing Model entry in manifest file.'],
    [{ model: {}, runtime: 'node' }, 'Model name is not defined.'],
    [{ model: { ...model, modelName: '' }, runtime: 'node' }, 'Model name is not defined.'],
    [{ model: { modelName: 'm' } }, 'Model version is not defined.'],
    [{ model }, 'Runtime is not defined or invalid.'],
    [{ model, runtime: 'ruby' }, 'Runtime is not defined or invalid.'],
    [[], 'Manifest file is invalid: it must be an object.'],
    ['text', 'Manifest file is invalid: it must be an object.'],
    [{ model: { ...model, handler: 5 }, runtime: 'node' }, /^Manifest file is invalid: model\.handler: /],
  ])('%j is refused', (value, message) => {
    expect(() => checkManifest(value)).toThrow(
      expect.objectContaining({
        code: 'INVALID_MODEL',
        message: typeof message === 'string' ? message : expect.stringMatching(message),
      }),
    )
  })

  test.each(['node', 'python', 'python3', 'LSP'])(
    'of runtime %s is taken, with keys that are not known',
    (runtime) => {
      const value = {
        createdOn: 'today',
        runtime,
        archiverVersion: '0.1',
        model: { ...model, mine: 1 },
        other: true,
      }
      expect(checkManifest(value)).toEqual(value)
    },
  )

  test.each(['2', '2.10', '1.0'])(
    'may write its version as the number %s, which stays as it is',
    async (version) => {
      const text = `{"model": {"modelName": "m", "modelVersion" : ${version}}, "runtime": "node"}`
      const manifest = await readManifest(tempFolder({ 'MAR-INF/MANIFEST.json': text }))
      expect(manifest?.model.modelVersion).toBe(version)
    },
  )

  test('is read from MAR-INF, and may be missing', async () => {
    const text = JSON.stringify({ runtime: 'node', model })
    expect((await readManifest(tempFolder({ 'MAR-INF/MANIFEST.json': text })))?.model.modelName).toBe('m')
    expect(await readManifest(tempFolder())).toBeUndefined()
  })

  test('that is no JSON, or endless, is refused', async () => {
    const broken = await failure(readManifest(tempFolder({ 'MAR-INF/MANIFEST.json': '{"model"' })))
    expect(broken).toMatchObject({ code: 'INVALID_MODEL' })
    expect(broken.message).toMatch(/^Manifest file is not valid JSON: /)
    const endless = tempFolder({ 'MAR-INF/MANIFEST.json': ' '.repeat(1024 * 1024 + 1) })
    expect((await failure(readManifest(endless))).message).toContain('must have at most')
  })
})

describe('a handler name', () => {
  test.each([
    ['handler', 'handler', undefined],
    ['handler.ts', 'handler.ts', undefined],
    ['src/handler.ts:Story', 'src/handler.ts', 'Story'],
    ['handler:handle', 'handler', 'handle'],
    ['C:\\models\\handler.ts', 'C:\\models\\handler.ts', undefined],
    ['C:\\models\\handler.ts:$a_1', 'C:\\models\\handler.ts', '$a_1'],
    [':x', ':x', undefined],
  ])('%j is %j and %j', (text, file, name) => {
    expect(parseHandlerEntry(text)).toEqual(name === undefined ? { file } : { file, export: name })
  })

  test('is the same after it was taken apart and put together', () => {
    fc.assert(fc.property(fc.string(), (text) => formatHandlerEntry(parseHandlerEntry(text)) === text))
  })
})

describe('the name of a model without a manifest', () => {
  test.each([
    ['/store/echo.mar', 'echo'],
    ['echo.model', 'echo'],
    ['my-model.v1.tar.gz', 'my_model_v1'],
    ['x.tgz', 'x'],
    ['/store/tiny-llama', 'tiny-llama'],
    ['/store/v1.2+a', 'v1.2+a'],
    ['/store/my llama-2', 'my_llama_2'],
    ['/store/a..b', 'a__b'],
    ['/store/Qwen2.5-0.5B-Q4_K_M.gguf', 'Qwen2.5-0.5B-Q4_K_M'],
    ['gemma-3-00001-of-00003.gguf', 'gemma-3'],
    ['_private.mar', '_private'],
  ])('%s is %s', (location, name) => {
    expect(defaultModelName(location)).toBe(name)
  })

  test('has only letters, digits and _, or is a name already', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const name = defaultModelName(text)
        return isName(name) || /^\w*$/.test(name)
      }),
    )
  })

  test.each(['.hidden', '-flag', 'a/b', 'a b', '', '../x', 'naïve'])(
    '%j is no name to pack under',
    (name) => {
      expect(MODEL_NAME.test(name)).toBe(false)
    },
  )
})

describe('a model config', () => {
  const read = (text: string): Promise<unknown> => readModelConfig(tempFolder({ 'model-config.yaml': text }))

  test('is found by its usual name, or by the one in the manifest', async () => {
    expect(await read('minWorkers: 2\nhandler:\n  top_k: 5\n')).toEqual({
      minWorkers: 2,
      handler: { top_k: 5 },
    })
    expect(await readModelConfig(tempFolder({ 'my.yml': 'a: 1' }), 'my.yml')).toEqual({ a: 1 })
  })

  test('may be missing or empty', async () => {
    expect(await readModelConfig(tempFolder())).toEqual({})
    expect(await read('# nothing\n')).toEqual({})
  })

  test.each(['- 1\n', 'text', 'a: b: c', 'a: [1', 'a: *unknown', `a: &a [x,x]\nb: [*a,*a,*a]\nc: 1\nc: 2`])(
    '%j is refused',
    async (text) => {
      const error = await failure(read(text))
      expect(error.code).toBe('INVALID_MODEL')
      expect(error.message).toMatch(/^Model config file model-config\.yaml cannot be used: [^\n]+[^:\n]\.$/)
    },
  )

  test('that grows when it is read is refused', async () => {
    const level = (n: number): string =>
      `a${n}: &a${n} [${Array(9)
        .fill(`*a${n - 1}`)
        .join(',')}]\n`
    const bomb = `a0: &a0 [x]\n${[1, 2, 3, 4, 5, 6, 7].map(level).join('')}`
    expect((await failure(read(bomb))).code).toBe('INVALID_MODEL')
  })

  test('must be there when the manifest names it, and inside the model', async () => {
    expect((await failure(readModelConfig(tempFolder(), 'no.yaml'))).message).toContain('does not exist')
    expect((await failure(readModelConfig(tempFolder(), '../no.yaml'))).message).toContain(
      'must be inside the model',
    )
  })
})

import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { type PreparedModel, prepareModel, type PrepareOptions } from '../../model-archiver/prepare.ts'
import { rawZip } from './archives-by-hand.ts'
import { failure, readTree, tempFolder, writeTree } from './temp.ts'
import { execFileSync } from '../support/tools.ts'

const PACKAGE = {
  'package.json': '{"name":"torchserve-ts","type":"module","exports":"./index.js"}',
  'index.js': 'export class BaseHandler {}\n',
}

/** A folder in which the server is installed beside two packages that handlers may import. */
function install(): { root: string; tempDir: string } {
  const folder = tempFolder({
    'node_modules/koa/index.js': '',
    'node_modules/engine/package.json': '{"name":"engine"}',
    'node_modules/engine/index.js': "module.exports = 'engine of the server'",
    'node_modules/shared/package.json': '{"name":"shared"}',
    'node_modules/shared/index.js': "module.exports = 'shared of the server'",
    'tmp/x': '',
  })
  const root = join(folder, 'node_modules/torchserve-ts')
  writeTree(root, PACKAGE)
  return { root, tempDir: join(folder, 'tmp') }
}

const HANDLER = `
import { BaseHandler } from 'torchserve-ts'
import engine from 'engine'
import shared from 'shared'
export default class Story extends BaseHandler {
  readonly packages: string[] = [engine, shared]
  readonly place: string = import.meta.url
}
`

async function prepared(
  location: string,
  options: Partial<PrepareOptions> & { packageRoot: string; tempDir: string },
  check: (model: PreparedModel) => unknown,
): Promise<void> {
  const model = await prepareModel(location, options)
  try {
    await check(model)
  } finally {
    await model.dispose()
  }
  expect(existsSync(model.workDir)).toBe(false)
}

/** Imports the handler as a worker does, in a real process of the server's installation. */
function load(root: string, model: PreparedModel): { same: boolean; packages: string[]; place: string } {
  const script = `
    const { BaseHandler } = await import(${JSON.stringify(pathToFileURL(join(root, 'index.js')).href)})
    const { default: Story } = await import(${JSON.stringify(pathToFileURL(model.handlerPath!).href)})
    const story = new Story()
    console.log(JSON.stringify({ same: story instanceof BaseHandler, packages: story.packages, place: story.place }))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  return JSON.parse(output) as { same: boolean; packages: string[]; place: string }
}

describe('a folder', () => {
  test('that the archiver wrote is served: its bundle is not given the same head twice', async () => {
    const { root, tempDir } = install()
    const project = tempFolder({ 'handler.ts': HANDLER })
    const path = await createArchive({
      modelName: 'story',
      version: '1.0',
      handler: join(project, 'handler.ts'),
      archiveFormat: 'no-archive',
      exportPath: project,
      external: ['engine', 'shared'],
    })
    await prepared(path, { packageRoot: root, tempDir }, (model) => {
      const loaded = load(root, model)
      expect(loaded.same).toBe(true)
      expect(loaded.packages).toEqual(['engine of the server', 'shared of the server'])
    })
  })

  test('is served as it is: TypeScript runs, the class is that of the server, packages are found', async () => {
    const { root, tempDir } = install()
    const project = tempFolder({
      'models/story/handler.ts': HANDLER,
      'models/story/model-config.yaml': 'minWorkers: 2\n',
      'node_modules/shared/package.json': '{"name":"shared"}',
      'node_modules/shared/index.js': "module.exports = 'shared of the project'",
    })
    const folder = join(project, 'models/story')
    const before = readTree(project)
    await prepared(folder, { packageRoot: root, tempDir }, (model) => {
      expect(model).toMatchObject({
        manifest: {
          runtime: 'node',
          model: { modelName: 'story', modelVersion: '1.0', handler: 'handler.ts' },
        },
        name: 'story',
        version: '1.0',
        runtime: 'node',
        modelDir: folder,
        handlerEntry: undefined,
        modelConfig: { minWorkers: 2 },
      })
      expect(load(root, model)).toEqual({
        same: true,
        packages: ['engine of the server', 'shared of the project'],
        place: pathToFileURL(join(folder, 'handler.ts')).href,
      })
    })
    expect(readTree(project)).toEqual(before)
    expect(readdirSync(join(tempDir, 'models'))).toEqual([])
  })

  test("shares the server's class although the project has a copy of its own", async () => {
    const { root, tempDir } = install()
    const project = tempFolder({ 'story/handler.ts': HANDLER })
    writeTree(join(project, 'node_modules/torchserve-ts'), PACKAGE)
    await prepared(join(project, 'story'), { packageRoot: root, tempDir }, (model) => {
      expect(load(root, model).same).toBe(true)
    })
  })

  test('of a checkout finds the dependencies of the server', async () => {
    const { root: installed } = install()
    const modules = join(installed, '..')
    const root = tempFolder(PACKAGE)
    symlinkSync(modules, join(root, 'node_modules'))
    const folder = tempFolder({ 'handler.ts': HANDLER })
    await prepared(folder, { packageRoot: root, tempDir: tempFolder() }, (model) => {
      expect(load(root, model)).toMatchObject({
        same: true,
        packages: ['engine of the server', 'shared of the server'],
      })
    })
  })

  test('that holds one folder and nothing else stands for that folder', async () => {
    const { root, tempDir } = install()
    const folder = tempFolder({ 'inner/handler.js': 'exports.handle = (r) => r', 'inner/weights': 'w' })
    await prepared(folder, { packageRoot: root, tempDir }, (model) => {
      expect(model.modelDir).toBe(join(folder, 'inner'))
    })
  })

  test('may name its handler and its export in a manifest', async () => {
    const { root, tempDir } = install()
    const manifest = {
      runtime: 'node',
      model: { modelName: 'n', modelVersion: '2', handler: 'src/main:Story' },
    }
    const folder = tempFolder({ 'MAR-INF/MANIFEST.json': JSON.stringify(manifest), 'src/main.ts': HANDLER })
    await prepared(folder, { packageRoot: root, tempDir }, (model) => {
      expect(model).toMatchObject({ name: 'n', version: '2', handlerEntry: 'Story' })
      expect(load(root, model).place).toBe(pathToFileURL(join(folder, 'src/main.ts')).href)
    })
  })

  test('without a script is for Python', async () => {
    const { root, tempDir } = install()
    const folder = tempFolder({ 'handler.py': 'pass', 'weights.pt': 'w' })
    await prepared(folder, { packageRoot: root, tempDir, defaultName: 'given' }, (model) => {
      expect(model).toMatchObject({
        runtime: 'python',
        name: 'given',
        handlerPath: undefined,
        modelDir: folder,
      })
      expect(model.manifest.model.handler).toBe('handler.py')
    })
  })

  test('takes handler and runtime from the request before its own', async () => {
    const { root, tempDir } = install()
    const folder = tempFolder({ 'handler.ts': HANDLER, 'other.mjs': 'export const go = () => []' })
    const options = { packageRoot: root, tempDir }
    await prepared(folder, { ...options, handlerOverride: 'other:go' }, (model) => {
      expect(model).toMatchObject({ handlerEntry: 'go', runtime: 'node' })
    })
    await prepared(folder, { ...options, runtimeOverride: 'python3' }, (model) => {
      expect(model).toMatchObject({ runtime: 'python3', handlerPath: undefined })
    })
    const error = await failure(prepareModel(folder, { ...options, runtimeOverride: 'ruby' }))
    expect(error).toEqual({ code: 'INVALID_ARGUMENT', message: 'Invalid RuntimeType value: ruby' })
  })

  test.each(['no.mjs', '../outside.mjs'])(
    'without the handler %s that it names is ready, and says why no worker can start',
    async (handlerOverride) => {
      const { root, tempDir } = install()
      const outer = tempFolder({ 'outside.mjs': '', 'model/handler.ts': HANDLER })
      const options = {
        packageRoot: root,
        tempDir,
        handlerOverride,
        runtimeOverride: 'node',
        defaultName: 'm',
      }
      await prepared(join(outer, 'model'), options, ({ handlerPath, handlerProblem }) => {
        expect(handlerPath).toBeUndefined()
        expect(handlerProblem).toMatchObject({
          code: 'INVALID_MODEL',
          message: `Handler ${handlerOverride} is missing in model m.`,
        })
      })
    },
  )
})

describe('an archive', () => {
  test('finds the packages of the project whose command runs, if the server is a link there', async () => {
    const { root, tempDir } = install()
    const project = tempFolder({
      'handler.ts': HANDLER,
      'node_modules/shared/package.json': '{"name":"shared"}',
      'node_modules/shared/index.js': "module.exports = 'shared of the project'",
    })
    const path = await createArchive({
      modelName: 'story',
      version: '1.0',
      handler: join(project, 'handler.ts'),
      exportPath: project,
      external: ['engine', 'shared'],
    })
    const [, own] = process.argv
    const found = async (packages: string[]): Promise<void> => {
      await prepared(path, { packageRoot: root, tempDir }, (model) => {
        expect(load(root, model)).toMatchObject({ same: true, packages })
      })
    }
    try {
      process.argv[1] = join(project, 'node_modules/.bin/torchserve-ts')
      // Any other program may run from there.
      await found(['engine of the server', 'shared of the server'])
      symlinkSync(root, join(project, 'node_modules/torchserve-ts'))
      await found(['engine of the server', 'shared of the project'])
    } finally {
      process.argv[1] = own!
    }
  })

  test.each(['default', 'tgz'] as const)(
    'of format %s is served from where it was unpacked',
    async (archiveFormat) => {
      const { root, tempDir } = install()
      const project = tempFolder({ 'handler.ts': HANDLER, 'weights.bin': 'w' })
      writeTree(join(project, 'node_modules/engine'), {
        'package.json': '{"name":"engine","gypfile":true}',
        'index.js': '',
      })
      writeTree(join(project, 'node_modules/shared'), {
        'package.json': '{"name":"shared"}',
        'index.js': "module.exports = 'shared of the archive'",
      })
      const archive = await createArchive({
        modelName: 'story',
        version: '3.1',
        handler: join(project, 'handler.ts'),
        serializedFile: join(project, 'weights.bin'),
        exportPath: project,
        archiveFormat,
      })
      await prepared(archive, { packageRoot: root, tempDir }, (model) => {
        expect(model).toMatchObject({ name: 'story', version: '3.1', runtime: 'node', modelConfig: {} })
        expect(readTree(model.modelDir)).toMatchObject({ 'weights.bin': 'w' })
        expect(model.handlerPath).toBe(join(model.modelDir, 'handler.mjs'))
        expect(load(root, model)).toEqual({
          same: true,
          packages: ['engine of the server', 'shared of the archive'],
          place: pathToFileURL(model.handlerPath!).href,
        })
      })
    },
  )

  test('may bring packages and a handler that was never bundled', async () => {
    const { root, tempDir } = install()
    const archive = join(tempFolder(), 'raw.mar')
    const entries = {
      'handler.ts': HANDLER,
      'node_modules/engine/package.json': '{"name":"engine"}',
      'node_modules/engine/index.js': "module.exports = 'engine of the archive'",
    }
    const zip = rawZip(Object.entries(entries).map(([name, content]) => ({ name, content })))
    writeTree(join(archive, '..'), { 'raw.mar': zip })
    await prepared(archive, { packageRoot: root, tempDir }, (model) => {
      expect(model).toMatchObject({ name: 'raw', version: '1.0', runtime: 'node' })
      expect(load(root, model)).toMatchObject({
        same: true,
        packages: ['engine of the archive', 'shared of the server'],
        place: pathToFileURL(join(model.modelDir, 'handler.ts')).href,
      })
    })
  })
})

describe('a model whose handler is not where it must be says so', () => {
  const settings = JSON.stringify({ name: 'm', implementation: 'model.mjs:M' })
  const MANIFEST = JSON.stringify({
    runtime: 'python',
    model: { modelName: 'm', modelVersion: '1', handler: 'x' },
  })

  test.each<[string, Record<string, string>, string]>([
    [
      'everything is one folder too deep',
      { 'nest/MAR-INF/MANIFEST.json': MANIFEST, 'nest/x.py': '' },
      'Model raw has no handler: raw.mar has no MAR-INF/MANIFEST.json; it has nest/MAR-INF/MANIFEST.json, but its files must not be in a folder.',
    ],
    [
      'there is no manifest',
      { 'x.py': '' },
      'Model raw has no handler: raw.mar has no MAR-INF/MANIFEST.json.',
    ],
    [
      'its script is not there',
      { 'model-settings.json': settings },
      'Handler model.mjs:M is missing in model m.',
    ],
    [
      'its script is in a folder',
      { 'model-settings.json': settings, 'src/model.mjs': '' },
      'Handler model.mjs:M is missing in model m: it has src/model.mjs.',
    ],
  ])('%s', async (_what, files, message) => {
    const { root, tempDir } = install()
    const zip = rawZip(Object.entries(files).map(([name, content]) => ({ name, content })))
    const folder = tempFolder({ 'raw.mar': zip })
    await prepared(join(folder, 'raw.mar'), { packageRoot: root, tempDir }, ({ handlerProblem }) => {
      expect(handlerProblem).toMatchObject({ code: 'INVALID_MODEL', message })
    })
  })
})

describe('a model that cannot be served leaves nothing behind:', () => {
  const manifest = (model: object): string => JSON.stringify({ runtime: 'node', model })
  const named = { modelName: 'm', modelVersion: '1' }

  test.each([
    ['no handler', { 'MAR-INF/MANIFEST.json': manifest(named) }, 'Model m has no handler.'],
    ['a broken manifest', { 'MAR-INF/MANIFEST.json': '{}' }, 'Missing Model entry in manifest file.'],
    ['a broken config', { 'handler.ts': '', 'model-config.yaml': '[' }, 'Model config file'],
    [
      'a handler that does not compile',
      { 'handler.ts': 'const = 1' },
      'Handler handler.ts cannot be bundled',
    ],
  ] as [string, Record<string, string>, string][])('%s', async (_what, files, message) => {
    const { root, tempDir } = install()
    const outer = tempFolder({ 'handler.mjs': '' })
    writeTree(join(outer, 'model'), files)
    const error = await failure(prepareModel(join(outer, 'model'), { packageRoot: root, tempDir }))
    expect(error.code).toBe('INVALID_MODEL')
    expect(error.message).toContain(message)
    expect(readdirSync(join(tempDir, 'models'))).toEqual([])
  })

  test('a broken archive', async () => {
    const { root, tempDir } = install()
    const folder = tempFolder({ 'x.mar': 'nonsense' })
    const error = await failure(prepareModel(join(folder, 'x.mar'), { packageRoot: root, tempDir }))
    expect(error.code).toBe('INVALID_ARCHIVE')
    expect(readdirSync(join(tempDir, 'models'))).toEqual([])
  })

  test('a missing one', async () => {
    const { root, tempDir } = install()
    const error = await failure(prepareModel('/no/such/model', { packageRoot: root, tempDir }))
    expect(error).toEqual({ code: 'MODEL_NOT_FOUND', message: 'Model not found at: /no/such/model' })
  })

  test('a temporary folder that is a link', async () => {
    const { root, tempDir } = install()
    mkdirSync(join(tempDir, 'elsewhere'))
    symlinkSync(join(tempDir, 'elsewhere'), join(tempDir, 'models'))
    const folder = tempFolder({ 'handler.ts': HANDLER })
    const error = await failure(prepareModel(folder, { packageRoot: root, tempDir }))
    expect(error.code).toBe('CONFIG')
  })
})

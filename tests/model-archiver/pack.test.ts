import { readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { expandGlob } from '../../model-archiver/contents.ts'
import { type ArchiveOptions, createArchive, packModel } from '../../model-archiver/pack.ts'
import { unpackArchive } from '../../model-archiver/unpack.ts'
import { failure, readTree, tempFolder } from './temp.ts'

const HANDLER = 'export const handle = (requests: unknown[]): unknown[] => requests\n'

function source(files: Record<string, string | Buffer> = {}): string {
  return tempFolder({ 'handler.ts': HANDLER, ...files })
}

function options(folder: string, more: Partial<ArchiveOptions> = {}): ArchiveOptions {
  const handler = join(folder, 'handler.ts')
  return { modelName: 'm', version: '1.0', handler, exportPath: join(folder, 'out'), ...more }
}

async function unpacked(archive: string): Promise<Record<string, string>> {
  const folder = join(tempFolder(), 'unpacked')
  await unpackArchive(archive, folder)
  return readTree(folder)
}

describe('an archive', () => {
  const files = {
    'weights.gguf': Buffer.alloc(200_000, 'w'),
    'model-config.yaml': 'minWorkers: 1\n',
    'requirements.txt': 'x',
    'model.txt': 'layers',
    'data/a.txt': 'a',
    'data/sub/b.txt': 'b',
    'list/one.json': '1',
    'list/two.json': '2',
    'list/three.txt': '3',
    [`data/${'long/'.repeat(30)}ünïcode.txt`]: 'deep',
  }
  const all = (folder: string): Partial<ArchiveOptions> => ({
    serializedFile: join(folder, 'weights.gguf'),
    configFile: join(folder, 'model-config.yaml'),
    requirementsFile: join(folder, 'requirements.txt'),
    modelFile: join(folder, 'model.txt'),
    extraFiles: [join(folder, 'data'), join(folder, 'list/*.json')],
  })

  test.each([
    ['default', 'm.mar'],
    ['zip-store', 'm.mar'],
    ['tgz', 'm.tar.gz'],
    ['no-archive', 'm'],
  ] as const)('of format %s holds what was packed', async (archiveFormat, name) => {
    const folder = source(files)
    const path = await createArchive(options(folder, { ...all(folder), archiveFormat }))
    expect(path).toBe(join(folder, 'out', name))
    expect(readdirSync(join(folder, 'out'))).toEqual([name])
    const tree = archiveFormat === 'no-archive' ? readTree(path) : await unpacked(path)
    const { 'MAR-INF/MANIFEST.json': manifest, 'handler.mjs': handler, ...rest } = tree
    expect(rest).toEqual({
      'weights.gguf': 'w'.repeat(200_000),
      'model-config.yaml': 'minWorkers: 1\n',
      'requirements.txt': 'x',
      'model.txt': 'layers',
      'a.txt': 'a',
      'sub/b.txt': 'b',
      [`${'long/'.repeat(30)}ünïcode.txt`]: 'deep',
      'one.json': '1',
      'two.json': '2',
    })
    expect(handler).toContain('handle')
    expect(JSON.parse(manifest!)).toEqual({
      createdOn: expect.stringMatching(/^\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d$/),
      runtime: 'node',
      archiverVersion: expect.stringMatching(/^\d+\.\d+\.\d+/),
      model: {
        modelName: 'm',
        modelVersion: '1.0',
        handler: 'handler.mjs',
        serializedFile: 'weights.gguf',
        modelFile: 'model.txt',
        requirementsFile: 'requirements.txt',
        configFile: 'model-config.yaml',
        extraFiles: ['a.txt', 'long', 'one.json', 'sub', 'two.json'],
      },
    })
  })

  test.each(['default', 'tgz'] as const)('of format %s is the same twice', async (archiveFormat) => {
    const folder = source(files)
    process.env['SOURCE_DATE_EPOCH'] = '1700000000'
    try {
      const first = await createArchive(options(folder, { ...all(folder), archiveFormat }))
      const bytes = readFileSync(first)
      await createArchive(options(folder, { ...all(folder), archiveFormat, force: true }))
      expect(readFileSync(first).equals(bytes)).toBe(true)
    } finally {
      delete process.env['SOURCE_DATE_EPOCH']
    }
  })

  test.each(['default', 'no-archive'] as const)(
    'of format %s is replaced only by force',
    async (archiveFormat) => {
      const folder = source({ 'extra.txt': 'x' })
      const path = await createArchive(
        options(folder, { archiveFormat, extraFiles: [join(folder, 'extra.txt')] }),
      )
      const again = await failure(createArchive(options(folder, { archiveFormat })))
      expect(again).toEqual({
        code: 'INVALID_ARGUMENT',
        message: `${path} already exists. Please specify --force/-f option to overwrite it.`,
      })
      await createArchive(options(folder, { archiveFormat, force: true }))
      const tree = archiveFormat === 'no-archive' ? readTree(path) : await unpacked(path)
      expect(Object.keys(tree)).toEqual(['MAR-INF/MANIFEST.json', 'handler.mjs'])
      expect(readdirSync(join(folder, 'out'))).toHaveLength(1)
    },
  )

  test('keeps the export of the handler, and finds a handler without its ending', async () => {
    const folder = source()
    const path = await createArchive(options(folder, { handler: `${join(folder, 'handler')}:handle` }))
    expect(JSON.parse((await unpacked(path))['MAR-INF/MANIFEST.json']!).model.handler).toBe(
      'handler.mjs:handle',
    )
  })

  test('of a Python handler holds it as it is', async () => {
    const folder = source({ 'my.py': 'def handle(): pass' })
    const path = await createArchive(
      options(folder, { handler: `${join(folder, 'my')}:handle`, runtime: 'python' }),
    )
    const tree = await unpacked(path)
    expect(tree['my.py']).toBe('def handle(): pass')
    expect(JSON.parse(tree['MAR-INF/MANIFEST.json']!)).toMatchObject({
      runtime: 'python',
      model: { handler: 'my:handle' },
    })
  })

  test.each(['image_classifier', 'handler.py'])('of %s is for Python without being told', async (handler) => {
    const folder = source({ 'handler.py': 'pass' })
    const path = await createArchive(
      options(folder, { handler: handler.endsWith('.py') ? join(folder, handler) : handler }),
    )
    const tree = await unpacked(path)
    expect(JSON.parse(tree['MAR-INF/MANIFEST.json']!)).toMatchObject({
      runtime: 'python',
      model: { handler },
    })
    expect('handler.py' in tree).toBe(handler === 'handler.py')
  })

  test('can be made by a program', async () => {
    const { generateModelArchive } = await import('../../model-archiver/index.ts')
    const path = await generateModelArchive(options(source({})))
    expect(Object.keys(await unpacked(path))).toContain('MAR-INF/MANIFEST.json')
  })

  test('goes without what a pattern does not find, and says so', async () => {
    const folder = source({})
    const { warnings } = await packModel(options(folder, { extraFiles: ['no-such-*'] }))
    expect(warnings).toEqual(['--extra-files: no file matches no-such-*'])
  })

  test('of a folder holds neither caches nor hidden folders', async () => {
    const folder = source({
      'data/keep.txt': 'x',
      'data/.hidden': 'x',
      'data/__pycache__/x.pyc': 'x',
      'data/__MACOSX/x': 'x',
      'data/.git/x': 'x',
    })
    const tree = await unpacked(await createArchive(options(folder, { extraFiles: [join(folder, 'data')] })))
    expect(Object.keys(tree).filter((name) => name.endsWith('x') || name.startsWith('.'))).toEqual([
      '.hidden',
    ])
    expect(tree['keep.txt']).toBe('x')
  })

  test.each(['.so', '.dylib'])('of a C++ handler holds its library', async (ending) => {
    const here = process.platform === 'darwin' ? '.dylib' : '.so'
    if (ending !== here) return
    const folder = source({ [`lib${ending}`]: 'library' })
    const tree = await unpacked(
      await createArchive(options(folder, { handler: join(folder, 'lib:Handler'), runtime: 'LSP' })),
    )
    expect(tree[`lib${ending}`]).toBe('library')
  })

  test('says which packages stayed outside', async () => {
    const folder = source({
      'handler.ts':
        "import add from 'native-thing'\nimport pad from 'plain'\nexport const handle = () => [add, pad]\n",
      'node_modules/native-thing/package.json': '{"name":"native-thing","main":"index.js","gypfile":true}',
      'node_modules/native-thing/index.js': '',
      'node_modules/plain/package.json': '{"name":"plain"}',
      'node_modules/plain/index.js': 'module.exports = 1',
    })
    const result = await packModel(options(folder))
    expect(result.externals).toEqual(['native-thing'])
    expect(result.warnings).toEqual([])
  })
})

describe('a mistake is refused and leaves nothing behind:', () => {
  test.each([
    ['a name with a slash', { modelName: 'a/b' }, 'Model name contains special characters.'],
    ['a name with dots only', { modelName: '..' }, 'Model name contains special characters.'],
    ['an empty version', { version: '' }, 'version'],
    ['a missing handler', { handler: 'no/such/handler' }, '--handler: file not found: no/such/handler'],
    ['a missing Python handler', { handler: 'no.py' }, '--handler: file not found: no.py'],
    ['a missing file', { serializedFile: 'no.bin' }, '--serialized-file: file not found: no.bin'],
    ['a folder as weights', { serializedFile: '.' }, '--serialized-file: file not found: .'],
  ] as [string, Partial<ArchiveOptions>, string][])('%s', async (_what, wrong, message) => {
    const folder = source()
    const error = await failure(createArchive(options(folder, wrong)))
    expect(error.code).toBe('INVALID_ARGUMENT')
    expect(error.message).toContain(message)
    expect(readdirSync(folder)).toEqual(['handler.ts'])
  })

  test('a handler that does not compile', async () => {
    const folder = source({ 'handler.ts': 'export const = 1\n' })
    const error = await failure(createArchive(options(folder)))
    expect(error.code).toBe('INVALID_MODEL')
    expect(error.message).toMatch(/^Handler handler\.ts cannot be bundled: handler\.ts:1: .+$/)
    expect(readdirSync(folder)).toEqual(['handler.ts'])
  })

  test('a handler that imports what is not installed', async () => {
    const folder = source({ 'handler.ts': "import x from 'not-installed'\nexport const handle = x\n" })
    expect((await failure(createArchive(options(folder)))).message).toContain(
      'Could not resolve "not-installed"',
    )
  })

  test('two files of one name', async () => {
    const folder = source({ 'a/x.txt': '1', 'b/X.txt': '2' })
    const extraFiles = [join(folder, 'a/x.txt'), join(folder, 'b')]
    expect((await failure(createArchive(options(folder, { extraFiles })))).message).toContain(
      'Two files would have the name',
    )
  })

  test('the same file twice is none', async () => {
    const folder = source({ 'a/model-config.yaml': '{}' })
    const configFile = join(folder, 'a/model-config.yaml')
    await createArchive(options(folder, { configFile, extraFiles: [join(folder, 'a')] }))
  })

  test('a manifest of its own', async () => {
    const folder = source({ 'a/MAR-INF/MANIFEST.json': '{}' })
    const error = await failure(createArchive(options(folder, { extraFiles: [join(folder, 'a')] })))
    expect(error.message).toContain('MAR-INF is reserved')
  })

  test('more files than a server would unpack', async () => {
    const files = Array.from({ length: 10_001 }, (_, n) => [`many/${n}`, ''] as const)
    const folder = source(Object.fromEntries(files))
    const error = await failure(createArchive(options(folder, { extraFiles: [join(folder, 'many')] })))
    expect(error.message).toContain('at most 10000 files and folders')
  })

  test('a folder that contains itself', async () => {
    const folder = source({ 'a/x': '1' })
    symlinkSync(join(folder, 'a'), join(folder, 'a/again'))
    const error = await failure(createArchive(options(folder, { extraFiles: [join(folder, 'a')] })))
    expect(error.message).toContain('nested too deeply')
  })
})

describe('a pattern', () => {
  test.each([
    ['*.txt', ['a.txt', 'b.txt']],
    ['?.txt', ['a.txt', 'b.txt']],
    ['[ab].txt', ['a.txt', 'b.txt']],
    ['[!a].txt', ['b.txt']],
    ['*/x.md', ['one/x.md', 'two/x.md']],
    ['.*', ['.hidden']],
    ['[x', ['[x']],
    ['a.txt', ['a.txt']],
    ['no.txt', []],
    ['a+(t', []],
  ])('%s means %j', async (pattern, names) => {
    const folder = tempFolder({
      'a.txt': '',
      'b.txt': '',
      '.hidden': '',
      '[x': '',
      'one/x.md': '',
      'two/x.md': '',
    })
    const found = await expandGlob(join(folder, pattern))
    expect(found).toEqual(names.map((name) => join(folder, name)))
  })
})

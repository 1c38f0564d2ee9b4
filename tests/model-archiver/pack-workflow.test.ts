import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { packWorkflow } from '../../model-archiver/pack-workflow.ts'
import { prepareWorkflow } from '../../model-archiver/prepare-workflow.ts'
import { unpackArchive } from '../../model-archiver/unpack.ts'
import { rawZip } from './archives-by-hand.ts'
import { tempFolder } from './temp.ts'

const SPEC = 'models: {m: {url: m.mar}}\ndag: {pre: [m]}\n'

function source(files: Record<string, string> = {}): string {
  return tempFolder({ 'spec.yaml': SPEC, 'handler.ts': 'export const pre = (x: unknown) => [x]\n', ...files })
}

function pack(folder: string, options: Partial<Parameters<typeof packWorkflow>[0]> = {}) {
  return packWorkflow({
    workflowName: 'story',
    specFile: join(folder, 'spec.yaml'),
    handler: join(folder, 'handler.ts'),
    exportPath: join(folder, 'out'),
    ...options,
  })
}

describe('packing a workflow', () => {
  test('writes NAME.war with a manifest, the specification, the bundled handler and extra files', async () => {
    const folder = source({
      'handler.ts': "import { text } from './text.ts'\nexport const pre = () => [text]\n",
      'text.ts': "export const text: string = 'hello'\n",
      'extra/words.txt': 'word',
    })
    const { path } = await pack(folder, { extraFiles: [join(folder, 'extra')] })
    expect(path).toBe(join(folder, 'out', 'story.war'))
    const unpacked = join(folder, 'unpacked')
    await unpackArchive(path, unpacked)
    expect(readdirSync(unpacked).sort()).toEqual(['WAR-INF', 'handler.mjs', 'spec.yaml', 'words.txt'])
    const manifest = JSON.parse(readFileSync(join(unpacked, 'WAR-INF/MANIFEST.json'), 'utf8')) as object
    expect(manifest).toEqual({
      createdOn: expect.stringMatching(/^\d\d\/\d\d\/\d{4} \d\d:\d\d:\d\d$/),
      workflow: { workflowName: 'story', specFile: 'spec.yaml', handler: 'handler.mjs' },
      archiverVersion: expect.any(String),
    })
    expect(readFileSync(join(unpacked, 'handler.mjs'), 'utf8')).toContain('hello')
  })

  test('takes a Python handler as it is', async () => {
    const folder = source({ 'functions.py': 'def pre(data, context): return data\n' })
    const { path } = await pack(folder, { handler: join(folder, 'functions.py') })
    const prepared = await prepareWorkflow(path, join(folder, 'tmp'))
    expect(prepared.functions).toEqual({ kind: 'python', file: 'functions.py', names: ['pre'] })
    await prepared.dispose()
  })

  test.each<[string, Partial<Parameters<typeof packWorkflow>[0]>, Record<string, string>, RegExp]>([
    ['a bad name', { workflowName: '../x' }, {}, /Workflow name contains special characters/],
    ['a missing specification', { specFile: 'none.yaml' }, {}, /--spec-file: file not found/],
    ['functions without a handler', { handler: undefined }, {}, /--handler is required: pre/],
    ['a graph with a cycle', {}, { 'spec.yaml': 'dag: {pre: [pre]}' }, /Self loop exception/],
    ['a handler with a mistake', {}, { 'handler.ts': 'const = 1' }, /handler\.ts/],
    ['a file where the manifest goes', { extraFiles: ['x'] }, {}, /WAR-INF is reserved/],
  ])('refuses %s, and writes nothing', async (_what, options, files, message) => {
    const folder = source({ 'x/WAR-INF/MANIFEST.json': '{}', ...files })
    const extra = options.extraFiles === undefined ? {} : { extraFiles: [join(folder, 'x')] }
    await expect(pack(folder, { ...options, ...extra })).rejects.toThrow(message)
    expect(existsSync(join(folder, 'out'))).toBe(false)
  })

  test('replaces an archive only with force', async () => {
    const folder = source()
    await pack(folder)
    await expect(pack(folder)).rejects.toThrow(/already exists/)
    await pack(folder, { force: true })
  })
})

describe('reading a workflow archive', () => {
  async function prepare(files: Record<string, string>) {
    const folder = tempFolder()
    writeFileSync(
      join(folder, 'w.war'),
      rawZip(Object.entries(files).map(([name, content]) => ({ name, content }))),
    )
    const outcome = await prepareWorkflow(join(folder, 'w.war'), join(folder, 'tmp')).catch(
      (error: unknown) => error,
    )
    return {
      outcome,
      left: existsSync(join(folder, 'tmp/models')) ? readdirSync(join(folder, 'tmp/models')) : [],
    }
  }

  const manifest = (workflow: unknown, rest: object = { createdOn: 'x', archiverVersion: '1' }) => ({
    'WAR-INF/MANIFEST.json': JSON.stringify({ ...rest, workflow }),
    'spec.yaml': SPEC,
  })
  const good = { workflowName: 'w', specFile: 'spec.yaml', handler: 'h.mjs' }

  test.each<[string, Record<string, string>, string]>([
    ['no manifest', { 'spec.yaml': SPEC }, 'Missing Workflow entry in manifest file.'],
    ['no workflow', manifest(undefined), 'Missing Workflow entry in manifest file.'],
    ['no name', manifest({ specFile: 'spec.yaml' }), 'Workflow name is not defined.'],
    ['no archiver version', manifest(good, { createdOn: 'x' }), 'Workflow archive version is not defined.'],
    ['no date', manifest(good, { archiverVersion: '1' }), 'Workflow archive createdOn is not defined.'],
    [
      'a specification outside',
      manifest({ ...good, specFile: '../spec.yaml' }),
      'Workflow specification ../spec.yaml is missing in the archive.',
    ],
    ['a handler that is not there', manifest(good), 'Workflow handler h.mjs is missing in the archive.'],
    [
      'functions without a handler',
      manifest({ ...good, handler: null }),
      'The workflow must have a handler with the functions pre.',
    ],
  ])('with %s is refused, and leaves nothing', async (_what, files, message) => {
    const { outcome, left } = await prepare(files)
    expect(outcome).toMatchObject({ code: 'INVALID_WORKFLOW', message })
    expect(left).toEqual([])
  })

  test('with names that lead out of it is refused, and leaves nothing', async () => {
    const { outcome, left } = await prepare({ ...manifest(good), '../evil': 'x' })
    expect(outcome).toMatchObject({ code: 'INVALID_ARCHIVE' })
    expect(left).toEqual([])
  })
})

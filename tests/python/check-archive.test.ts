import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, test } from '@jest/globals'
import { checkArchive } from '../../frontend/cli/check-archive.ts'
import { packPython, type PythonArchive } from '../support/python/archive.ts'
import { describePython } from '../support/python/test-python.ts'
import { tempDir } from '../support/temp.ts'
import { zipOf } from '../support/zip.ts'

const HANDLE = 'def handle(data, context):\n    return None\n'
const CLASS = (name: string): string =>
  `class ${name}:\n    def initialize(self, context):\n        pass\n    def handle(self, data, context):\n        return data\n`

interface Checked {
  status: number
  out: string
  err: string
}

async function check(file: string, config: Record<string, string> = {}): Promise<Checked> {
  const tsConfig = join(tempDir(), 'config.properties')
  const lines = Object.entries(config).map(([key, value]) => `${key}=${value}\n`)
  writeFileSync(tsConfig, lines.join(''))
  const out: string[] = []
  const err: string[] = []
  const output = { out: (line: string) => out.push(line), err: (line: string) => err.push(line) }
  const status = await checkArchive(file, { tsConfig }, output)
  return { status, out: out.join('\n'), err: err.join('\n') }
}

test('an archive for Node runs without any Python', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.mjs'), 'export const handle = (requests) => requests\n')
  const { status, out } = await check(folder, { python: '/nowhere/python' })
  expect(out).toContain('runtime node, handler handler.mjs')
  expect(out).toContain('The archive runs here.')
  expect(status).toBe(0)
})

test('without a Python the report says how to get one', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.py'), HANDLE)
  const { status, out } = await check(folder, { python: '/nowhere/python' })
  expect(out).toMatch(/Missing here:\n {2}- No Python was found .*\nThe archive does not run here yet\.$/)
  expect(status).toBe(1)
})

test('what is no archive is status 2, what is not there is status 1', async () => {
  const broken = join(tempDir(), 'broken.mar')
  writeFileSync(broken, 'junk')
  expect(await check(broken)).toMatchObject({ status: 2, out: expect.stringContaining('must be a zip') })
  const unsafe = join(tempDir(), 'unsafe.mar')
  writeFileSync(unsafe, await zipOf({ '../evil.py': '', 'MAR-INF/MANIFEST.json': '{}' }))
  expect((await check(unsafe)).status).toBe(2)
  expect(await check('no-such.mar')).toMatchObject({
    status: 1,
    err: `torchserve-ts: --check-archive: there is no ${resolve('no-such.mar')}`,
  })
})

await describePython('archives of the real torch-model-archiver', (environment) => {
  const config = { python: environment.python }

  async function packed(archive: Partial<PythonArchive>): Promise<string> {
    return packPython(environment, tempDir(), { name: 'm', handler: HANDLE, ...archive })
  }

  test('packing a model m leaves a neighbour’s $TMPDIR/m alone', async () => {
    const neighbour = join(tmpdir(), 'm')
    mkdirSync(neighbour, { recursive: true })
    await packed({})
    expect(existsSync(neighbour)).toBe(true)
  })

  test.each(['default', 'tgz', 'no-archive', 'zip-store'] as const)('%s runs', async (format) => {
    const { status, out, err } = await check(await packed({ format, version: '2.5' }), config)
    expect(err).toBe('')
    expect(out).toMatch(
      /^Model m, version 2\.5, runtime python, handler handler\.py\n(SHA-256 [0-9a-f]{64}\n)?Runs:\n/,
    )
    expect(out).toMatch(/TorchServe’s own worker 0\.12\.0 on Python 3\.\d+\.\d+ \(\//)
    expect(status).toBe(0)
  })

  test('what differs is said for what the archive uses, and nothing is left behind', async () => {
    const archive = await packed({
      config:
        'minWorkers: 2\nmaxBatchDelay: 0\nbatchSize: many\nasyncCommunication: true\nhandler: {mine: 1}\n',
    })
    const before = readdirSync(join(archive, '..'))
    const { status, out } = await check(archive, config)
    expect(out).toContain('2 workers on cpu at start, batchSize 1, maxBatchDelay 0 ms')
    expect(out).toContain('Differs from TorchServe:')
    expect(out).toContain('batchSize must be an integer, found "many"; the default is used.')
    expect(out).toContain('minWorkers without maxWorkers sets both to 2')
    expect(out).toContain('maxBatchDelay 0 forms batches without waiting')
    expect(status).toBe(0)
    expect(readdirSync(join(archive, '..'))).toEqual(before)
  })

  test.each([
    ['our worker', '', {}, /The server’s own Python worker on Python 3\.\d+\.\d+ \(\//],
    ['TorchServe’s worker', 'continuousBatching: true\n', {}, /TorchServe’s own worker 0\.12\.0/],
    ['TorchServe’s worker', '', { service_envelope: 'json' }, /TorchServe’s own worker 0\.12\.0/],
  ])('%s runs a handler that imports torchserve_ts, with "%s" and %j', async (_name, text, keys, words) => {
    const archive = await packed({ handler: `import torchserve_ts\n${HANDLE}`, config: text })
    expect((await check(archive, { ...config, ...keys })).out).toMatch(words)
  })

  test('a GPU that is asked for and is not there is said', async () => {
    const { status, out } = await check(await packed({ config: 'deviceType: gpu\n' }), {
      ...config,
      number_of_gpu: '0',
    })
    expect(out).toContain('on cpu (deviceType is gpu, but no GPU was found) at start')
    expect(status).toBe(0)
  })

  test('imports that nobody can serve are named with the file and the command', async () => {
    const archive = await packed({
      handler:
        'import json, helper\nfrom ts.torch_handler.base_handler import BaseHandler\ntry:\n    import optional_thing\nexcept ImportError:\n    pass\n' +
        'class Mine(BaseHandler):\n    pass\n',
      files: { 'helper.py': 'import cv2\nfrom nowhere.deep import thing\n' },
    })
    const { status, out } = await check(archive, config)
    expect(out).toContain('nowhere (imported by helper.py)')
    expect(out).toContain('cv2 (imported by helper.py)')
    expect(out).toMatch(/-m pip install .*opencv-python/)
    expect(out).not.toContain('optional_thing')
    expect(out).not.toContain('json')
    expect(status).toBe(1)
  })

  test('requirements are what installs them, when they are installed', async () => {
    const archive = await packed({ handler: `import nowhere\n${HANDLE}`, requirements: 'nowhere\n' })
    const without = await check(archive, config)
    expect(without).toMatchObject({
      status: 1,
      out: expect.stringContaining('or set install_py_dep_per_model=true'),
    })
    const installed = await check(archive, { ...config, install_py_dep_per_model: 'true' })
    expect(installed.out).toContain('requirements.txt must install nowhere (imported by handler.py)')
    expect(installed.status).toBe(0)
  })

  test.each([
    [
      'a syntax error',
      { handler: 'def handle(data, context)\n    pass\n' },
      1,
      /handler\.py: .* \(line 1\): not valid in Python 3/,
    ],
    [
      'no entry',
      { handler: 'import json\ndef predict(data, context):\n    pass\n' },
      2,
      /must have a class or the function handle\./,
    ],
    ['two classes', { handler: `${CLASS('A')}${CLASS('B')}` }, 2, /several classes and no function handle/],
    [
      'two classes behind a function',
      { handler: `${CLASS('A')}${CLASS('B')}handle = A().handle\n` },
      0,
      /The archive runs here/,
    ],
  ])('%s is found without running the handler', async (_name, archive, expected, message) => {
    const { status, out } = await check(await packed(archive), config)
    expect(out).toMatch(message)
    expect(status).toBe(expected)
  })

  test('a handler that is nowhere, and files that the manifest names and are not there', async () => {
    const folder = join(tempDir(), 'm')
    mkdirSync(join(folder, 'MAR-INF'), { recursive: true })
    const model = {
      modelName: 'm',
      modelVersion: '1.0',
      handler: 'no_such_handler',
      serializedFile: 'weights.pt',
    }
    writeFileSync(join(folder, 'MAR-INF', 'MANIFEST.json'), JSON.stringify({ runtime: 'python', model }))
    writeFileSync(join(folder, 'other.txt'), '')
    const { status, out } = await check(folder, config)
    expect(out).toContain('Handler no_such_handler must be in the archive or be one of TorchServe’s.')
    expect(out).toContain('serializedFile weights.pt is not in the archive.')
    expect(status).toBe(2)
  })

  test('a handler of TorchServe is known, and what it imports', async () => {
    const archive = await packed({
      handler: 'image_classifier',
      files: { 'weights.pt': '' },
      flags: ['--serialized-file', 'weights.pt'],
    })
    const { out } = await check(archive, config)
    expect(out).toContain('TorchServe’s handler image_classifier')
    if (!environment.realTorch) expect(out).toContain('torchvision (imported by ts/torch_handler/')
  })
})

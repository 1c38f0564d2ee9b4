import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { bundleHandler } from '../../model-archiver/bundle.ts'
import { prepareModel } from '../../model-archiver/prepare.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { zipOf } from '../support/zip.ts'

function write(folder: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

/** A folder in which everybody can write, with what another user may have left there. */
function foreignFolder(): string {
  const folder = tempDir()
  chmodSync(folder, 0o777)
  write(folder, {
    'node_modules/optional/index.js': "module.exports = 'planted'",
    'tsconfig.json': JSON.stringify({ compilerOptions: { paths: { './word.ts': ['./evil.ts'] } } }),
    'evil.ts': "export const word = 'planted'",
  })
  return folder
}

const PACKAGE = JSON.stringify({ type: 'module', sideEffects: false, imports: { '#word': './evil.ts' } })

/** Each way to find a module: what it found. */
const HANDLER = `
import { createRequire } from 'node:module'
import './effect.ts'
import { word } from './word.ts'
const found = [word, (globalThis as { effect?: string }).effect]
for (const load of [() => import('optional'), () => createRequire(import.meta.url)('optional'), () => require('optional'), () => import('inner')])
  found.push(await Promise.resolve().then(load).then(String, (error: { code?: string }) => error.code))
export const handle = (requests: unknown[]): unknown[] => requests.map(() => found)
`

const FILES = {
  'handler.ts': HANDLER,
  'word.ts': "export const word = 'own'",
  'effect.ts': "(globalThis as { effect?: string }).effect = 'done'",
  // A package of the model that lacks another one.
  'node_modules/inner/package.json': '{"name":"inner","main":"index.js"}',
  'node_modules/inner/index.js': "require('optional')",
}

const MANIFEST = JSON.stringify({
  runtime: 'node',
  model: { modelName: 'packed', modelVersion: '1.0', handler: 'handler.ts' },
})

const NOTHING = ['own', 'done', 'ERR_MODULE_NOT_FOUND', ...Array<string>(3).fill('MODULE_NOT_FOUND')]

test('neither an archive nor a folder loads what another user planted above it', async () => {
  const temp = foreignFolder()
  write(temp, { 'package.json': PACKAGE })
  const store = tempDir()
  writeFileSync(join(store, 'packed.mar'), await zipOf({ ...FILES, 'MAR-INF/MANIFEST.json': MANIFEST }))
  const foreign = foreignFolder()
  write(join(foreign, 'plain'), FILES)
  const server = await startServer({
    modelStore: store,
    models: ['packed.mar', `plain=${join(foreign, 'plain')}`],
    env: { TEMP: temp },
  })
  for (const model of ['packed', 'plain']) {
    await server.ready(model)
    const { body } = await rawRequest(server.ports.inference, `/predictions/${model}`)
    expect([model, JSON.parse(body)]).toEqual([model, NOTHING])
  }
})

test('a package.json that another user may have written is named, and the model not compiled', async () => {
  const foreign = foreignFolder()
  write(join(foreign, 'plain'), FILES)
  write(foreign, { 'package.json': PACKAGE })
  const options = { tempDir: tempDir() }
  await expect(prepareModel(join(foreign, 'plain'), options)).rejects.toMatchObject({
    code: 'INVALID_MODEL',
    message: `${join(foreign, 'package.json')} would apply to the handler, and other users can write in its folder. Put a package.json into ${join(foreign, 'plain')}`,
  })
  write(join(foreign, 'plain'), { 'package.json': '{}' })
  await (await prepareModel(join(foreign, 'plain'), options)).dispose()
})

test('the archiver packs nothing that another user planted', async () => {
  const foreign = foreignFolder()
  write(join(foreign, 'plain'), {
    ...FILES,
    'package.json': '{}',
    'handler.ts': "export { word as handle } from './word.ts'; import 'optional'",
  })
  const outFile = join(tempDir(), 'out.mjs')
  await expect(bundleHandler({ entry: join(foreign, 'plain', 'handler.ts'), outFile })).rejects.toThrow(
    'optional',
  )
})

test('a file outside of an archive does not become a part of its handler', async () => {
  const folder = tempDir()
  const secret = join(folder, 'secret.txt')
  writeFileSync(secret, 'secret')
  const archive = join(folder, 'm.mar')
  const handler = `import text from ${JSON.stringify(secret)} with { type: 'text' }\nexport const handle = () => [text]\n`
  writeFileSync(archive, await zipOf({ 'handler.ts': handler, 'MAR-INF/MANIFEST.json': MANIFEST }))
  await expect(prepareModel(archive, { tempDir: folder })).rejects.toMatchObject({
    code: 'INVALID_MODEL',
    message: expect.stringContaining(`${secret} is not in the model`),
  })
})

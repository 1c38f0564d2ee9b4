import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { installCommand } from '../../frontend/cli/install-hint.ts'
import { modelPlace } from '../../frontend/cli/model-place.ts'
import { chooseWeights } from '../../frontend/cli/weights-choice.ts'
import { tempDir } from '../support/temp.ts'

const FILES = ['README.md', 'm-Q4_K.gguf', 'm-Q4_K_M.gguf', 'm-f16.gguf', 'mmproj-m-f16.gguf']
const PARTS = ['Q8/m-Q8_0-00001-of-00002.gguf', 'Q8/m-Q8_0-00002-of-00002.gguf']

test.each([
  ['the tag, as a whole part of the name', FILES, { tag: 'q4_k' }, ['m-Q4_K.gguf']],
  ['the tag that another begins with', FILES, { tag: 'Q4_K_M' }, ['m-Q4_K_M.gguf']],
  ['the only one', ['a.gguf', 'mmproj-a.gguf'], {}, ['a.gguf']],
  ['the file', FILES, { file: 'mmproj-m-f16.gguf' }, ['mmproj-m-f16.gguf']],
  ['all parts of the only one', PARTS, {}, PARTS],
  ['all parts of a tag', [...FILES, ...PARTS], { tag: 'Q8_0' }, PARTS],
  ['a file in a folder, by its last part', PARTS, { file: 'm-Q8_0-00001-of-00002.gguf' }, PARTS],
])('of several files %s is chosen', (_what, files, wanted, chosen) => {
  expect(chooseWeights(files, { repository: 'org/m', ...wanted })).toEqual(chosen)
})

test.each([
  [FILES, {}, 'org/m has 3 .gguf files: Q4_K, Q4_K_M, f16. Name one as org/m:TAG or with --file'],
  [FILES, { tag: 'Q2_K' }, 'org/m has no .gguf file Q2_K: it has Q4_K, Q4_K_M, f16'],
  [FILES, { file: 'x.gguf' }, /^org\/m has no x\.gguf: it has README\.md, /],
  [FILES, { file: 'README.md' }, /^README\.md is not supported: it must be a \.gguf file or an archive/],
  [['model.safetensors'], {}, /^org\/m has no \.gguf file; \.safetensors files are not supported: look for/],
  [['x.mar'], {}, 'org/m has no .gguf file; it has x.mar, which --file can name'],
  [PARTS.slice(0, 1), {}, /^org\/m lacks Q8\/m-Q8_0-00002-of-00002\.gguf, a part of the model/],
])('what cannot be chosen is told with what there is', (files, wanted, message) => {
  expect(() => chooseWeights(files, { repository: 'org/m', ...wanted })).toThrow(message)
})

const HUB = 'https://hub.example'

test.each([
  ['org/m', { repository: 'org/m' }],
  ['org/m:Q4_K_M', { repository: 'org/m', tag: 'Q4_K_M' }],
  ['hf.co/org/m:Q4_K_M', { repository: 'org/m', tag: 'Q4_K_M' }],
  ['hf://org/m', { repository: 'org/m' }],
  ['https://huggingface.co/org/m?library=gguf', { repository: 'org/m' }],
  ['https://huggingface.co/org/m/tree/v2', { repository: 'org/m', revision: 'v2' }],
  [`${HUB}/org/m/blob/main/a/b%20c.gguf`, { repository: 'org/m', revision: 'main', file: 'a/b c.gguf' }],
  [
    `${HUB}/org/m/resolve/main/x.gguf?download=true`,
    { repository: 'org/m', revision: 'main', file: 'x.gguf' },
  ],
])('%s is a model of the hub', (text, place) => {
  expect(modelPlace(text, HUB)).toEqual({ kind: 'hub', ...place })
})

test('a path that exists comes before a model of the hub; a URL names a file', () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'org/m'), { recursive: true })
  writeFileSync(join(folder, 'org/m/x.txt'), '')
  expect(modelPlace(join(folder, 'org/m'), HUB)).toEqual({ kind: 'path', path: join(folder, 'org/m') })
  expect(() => modelPlace(join(folder, 'org/m/x.txt'), HUB)).toThrow(/x\.txt is not supported\. It must be a/)
  expect(() => modelPlace('./nowhere.gguf', HUB)).toThrow(/^\.\/nowhere\.gguf does not exist\. It must be a/)
  const url = 'https://files.example/a/x.gguf?sig=1'
  expect(modelPlace(url, HUB)).toEqual({ kind: 'url', url })
  expect(() => modelPlace('https://files.example/x.zip', HUB)).toThrow(/x\.zip is not supported\. It must be/)
})

test.each([
  ['project/node_modules/torchserve-ts', "cd ROOT/project && npm install a 'b@^2.0.0'"],
  ['lib/node_modules/torchserve-ts', "npm install --global a 'b@^2.0.0'"],
  ['_npx/0a1b/node_modules/torchserve-ts', "npx -p torchserve-ts -p a -p 'b@^2.0.0' torchserve-ts serve ..."],
  ['checkout', 'cd ROOT/checkout && npm install'],
])('where torchserve-ts is in %s, the command that installs packages fits', (place, command) => {
  const root = tempDir()
  mkdirSync(join(root, place), { recursive: true })
  writeFileSync(join(root, place, 'package.json'), '{"peerDependencies":{"b":"^2.0.0"}}')
  expect(installCommand(['a', 'b'], join(root, place)).replace(root, 'ROOT')).toBe(command)
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { checkWeights, memoryWarning } from '../../handlers/gguf/check-weights.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

const WHOLE = join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf')
const whole = readFileSync(WHOLE)
const cli = join(REPOSITORY, 'dist', 'frontend', 'cli.js')

function file(bytes: Buffer | string): string {
  const path = join(tempDir(), 'model.gguf')
  writeFileSync(path, bytes)
  return path
}

function header(version: number, tensors: bigint, entries: bigint): Buffer {
  const bytes = Buffer.from(whole.subarray(0, 4096))
  bytes.writeUInt32LE(version, 4)
  bytes.writeBigUInt64LE(tensors, 8)
  bytes.writeBigUInt64LE(entries, 16)
  return bytes
}

function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** A file whose metadata is one entry, named k: its type, then these bytes, then zeros. */
function withValue(type: number, ...pieces: Buffer[]): Buffer {
  const entry = [uint64(1n), Buffer.from('k'), uint32(type), ...pieces]
  return Buffer.concat([header(3, 0n, 1n).subarray(0, 24), ...entry, Buffer.alloc(4096)])
}

/** The rest of a list: the type of its items, and how many it says there are. */
const list = (type: number, count: bigint): Buffer => Buffer.concat([uint32(type), uint64(count)])

test.each([
  ['is empty', '', 'model.gguf must be a GGUF file, but it does not begin with GGUF'],
  ['is a page of a web site', '<!doctype html>', 'it does not begin with GGUF'],
  ['ends in its header', whole.subarray(0, 20), 'it is damaged or incomplete'],
  ['has text for a header', 'GGUF and then any text', 'it is damaged or incomplete'],
  [
    'has an unknown version',
    header(1_918_986_016, 1n, 1n),
    'GGUF version 1918986016 of model.gguf is not supported',
  ],
  ['says more tensors than fit', header(3, 2n ** 60n, 1n), 'it is damaged or incomplete'],
  ['says more entries than fit', header(3, 1n, 2n ** 60n), 'it is damaged or incomplete'],
  ['has a text that is longer', withValue(8, uint64(2n ** 63n)), 'it is damaged or incomplete'],
  ['has a list of bytes that is longer', withValue(9, list(0, 2n ** 60n)), 'it is damaged or incomplete'],
  ['has a list of numbers that is longer', withValue(9, list(12, 600n)), 'it is damaged or incomplete'],
  ['has a list of texts that is longer', withValue(9, list(8, 2n ** 33n)), 'it is damaged or incomplete'],
  [
    'has lists in lists',
    withValue(9, ...Array.from({ length: 100_000 }, () => list(9, 1n))),
    'it is damaged or incomplete',
  ],
  ['has a value of an unknown type', withValue(99), 'it is damaged or incomplete'],
])('a file that %s is told as such', (_what, bytes, message) => {
  expect(() => {
    checkWeights(file(bytes))
  }).toThrow(message)
})

test.each([
  ['a text', withValue(8, uint64(5n))],
  ['a list of numbers that fills the file', withValue(9, list(12, 512n))],
  ['a list of empty texts', withValue(9, list(8, 512n))],
  ['a list of lists', withValue(9, list(9, 2n), list(4, 3n), Buffer.alloc(12), list(8, 0n))],
])('a file with %s passes', (_what, bytes) => {
  expect(() => {
    checkWeights(file(bytes))
  }).not.toThrow()
})

/** A text of the metadata. */
function entry(key: string, value: string): Buffer {
  const [name, text] = [Buffer.from(key), Buffer.from(value)]
  return Buffer.concat([uint64(BigInt(name.length)), name, uint32(8), uint64(BigInt(text.length)), text])
}

/** A file with these texts as its metadata, in this order. */
function withTexts(...texts: [key: string, value: string][]): Buffer {
  const head = header(3, 0n, BigInt(texts.length)).subarray(0, 24)
  return Buffer.concat([head, ...texts.map(([key, value]) => entry(key, value)), Buffer.alloc(64)])
}

const LORA = withTexts(
  ['general.architecture', 'llama'],
  ['general.type', 'adapter'],
  ['adapter.type', 'lora'],
)

test.each([
  ['a LoRA adapter', LORA],
  ['a LoRA adapter', withTexts(['general.architecture', 'llama'], ['adapter.type', 'lora'])],
  ['the image part (mmproj) of a model', withTexts(['general.type', 'mmproj'])],
  ['the image part (mmproj) of a model', withTexts(['general.architecture', 'clip'])],
  ['a file of the type imatrix', withTexts(['general.type', 'imatrix'])],
])('%s is no model by itself', (what, bytes) => {
  expect(() => {
    checkWeights(file(bytes))
  }).toThrow(`model.gguf is ${what} and cannot be served alone: serve the .gguf file of its model`)
})

test('weights that are larger than the memory are told before they are loaded', () => {
  const folder = tempDir()
  for (const name of ['m-00001-of-00002.gguf', 'm-00002-of-00002.gguf', 'm-1.gguf'])
    writeFileSync(join(folder, name), Buffer.alloc(1_000))
  const first = join(folder, 'm-00001-of-00002.gguf')
  expect(memoryWarning(first, 2_000)).toBeUndefined()
  expect(memoryWarning(first, 1_999)).toMatch(/^m-00001-of-00002\.gguf has 0\.0 GB, and there is memory of/)
  expect(memoryWarning(join(folder, 'm-1.gguf'), 1_000)).toBeUndefined()
})

test('a whole file passes', () => {
  expect(() => {
    checkWeights(WHOLE)
  }).not.toThrow()
})

test('a file that ends before its tensors do: the start ends with what the runtime says of it', async () => {
  const path = file(whole.subarray(0, whole.length / 2))
  const { exitCode, stderr } = await execa(process.execPath, [cli, 'serve', path, '--port', '0'], {
    reject: false,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  expect(stderr).toMatch(/did not load: .*data is not within the file bounds/)
  expect(exitCode).toBe(1)
})

test('a LoRA adapter that is served: one line says what it is', async () => {
  const { exitCode, stderr } = await execa(process.execPath, [cli, 'serve', file(LORA), '--port', '0'], {
    reject: false,
    env: { ...process.env, NODE_OPTIONS: '' },
  })
  const [loading, ...lines] = stderr.split('\n')
  expect([loading, lines]).toEqual(['Loading model.gguf ...', [expect.stringContaining('is a LoRA adapter')]])
  expect(exitCode).toBe(1)
})

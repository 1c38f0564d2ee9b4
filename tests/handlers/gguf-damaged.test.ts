import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { checkWeights } from '../../handlers/gguf/check-weights.ts'
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

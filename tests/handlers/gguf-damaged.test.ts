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

test.each([
  ['is empty', '', 'model.gguf must be a GGUF file, but it does not begin with GGUF'],
  ['is a page of a web site', '<!doctype html>', 'it does not begin with GGUF'],
  ['ends in its header', whole.subarray(0, 20), 'it is damaged or incomplete'],
  ['has text for a header', 'GGUF and then any text', 'it is damaged or incomplete'],
  ['has an unknown version', header(1_918_986_016, 1n, 1n), 'the version 1918986016 of GGUF, not supported'],
  ['says more tensors than fit', header(3, 2n ** 60n, 1n), 'it is damaged or incomplete'],
  ['says more entries than fit', header(3, 1n, 2n ** 60n), 'it is damaged or incomplete'],
])('a file that %s is told as such', (_what, bytes, message) => {
  expect(() => {
    checkWeights(file(bytes))
  }).toThrow(message)
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

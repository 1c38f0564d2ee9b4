import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'
import { blocksOf } from './blocks.ts'

const HANDLER = `
export async function* handle(requests) {
  for (const word of requests[0].data.toString().split(' ')) yield [word + ';']
}
`
const BLOCKS = blocksOf('docs/grpc.md')
const PYTHON = process.env['GRPC_PYTHON'] ?? 'python3'

let server: Server
let folder: string

/** A project of a reader: the clients of the page, and the package installed. */
beforeAll(async () => {
  folder = tempDir()
  for (const { file, code } of BLOCKS) if (file !== undefined) writeFileSync(join(folder, file), code)
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  symlinkSync(REPOSITORY, join(modules, 'torchserve-ts'))
  symlinkSync(join(REPOSITORY, 'node_modules', '@grpc'), join(modules, '@grpc'))
  const model = tempDir()
  writeFileSync(join(model, 'handler.mjs'), HANDLER)
  server = await startServer({ models: [`my_model=${model}`] })
  await server.ready('my_model')
})

afterAll(() => server.stop())

/** Runs the commands with these words. */
async function run(words: string, PATH = process.env['PATH']): Promise<string> {
  const { code } = BLOCKS.find(({ language, code: each }) => language === 'sh' && each.includes(words))!
  const env = { PATH, ADDRESS: `127.0.0.1:${server.ports.grpcInference}` }
  const { stdout } = await execa('sh', ['-e', '-c', code], { cwd: folder, env })
  return stdout
}

test('docs/grpc.md: the client in Node.js prints what the handler streams', async () => {
  expect(await run('node client.mjs')).toBe('one;two;three;')
})

const hasGrpc = await execa(PYTHON, ['-c', 'import grpc_tools'], { reject: false })
const withGrpc = hasGrpc.exitCode === 0 ? test : test.skip

withGrpc('docs/grpc.md: the client in Python prints what the handler streams', async () => {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'python'), `#!/bin/sh\nexec '${PYTHON}' "$@"\n`, { mode: 0o755 })
  const path = `${bin}:${process.env['PATH']}`
  const { code } = BLOCKS.find(({ code: each }) => each.includes('grpc_tools.protoc'))!
  const generate = code.replace(/^pip.*\n/, '')
  await execa('sh', ['-e', '-c', generate], { cwd: folder, env: { PATH: path } })
  expect(await run('python client.py', path)).toBe('one;two;three;')
})

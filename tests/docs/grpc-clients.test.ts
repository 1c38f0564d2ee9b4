import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { freePorts } from '../support/ports.ts'
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
let v2Address: string

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
  const [port] = await freePorts(1)
  v2Address = `127.0.0.1:${port!}`
  server = await startServer({ models: [`my_model=${model}`], config: { open_inference_grpc_port: port! } })
  await server.ready('my_model')
})

afterAll(() => server.stop())

/** Runs the commands with these words. */
async function run(words: string, PATH = process.env['PATH']): Promise<string> {
  const { code } = BLOCKS.find(({ language, code: each }) => language === 'sh' && each.includes(words))!
  const env = { PATH, ADDRESS: `127.0.0.1:${server.ports.grpcInference}`, V2_ADDRESS: v2Address }
  const { stdout } = await execa('sh', ['-e', '-c', code], { cwd: folder, env })
  return stdout
}

test.each(['client.mjs', 'v2-client.mjs'])(
  'docs/grpc.md: %s prints what the handler streams',
  async (client) => {
    expect(await run(`node ${client}`)).toBe('one;two;three;')
  },
)

const hasGrpc = await execa(PYTHON, ['-c', 'import grpc_tools'], { reject: false })
const withGrpc = hasGrpc.exitCode === 0 ? test : test.skip

withGrpc('docs/grpc.md: the clients in Python print what the handler streams', async () => {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'python'), `#!/bin/sh\nexec '${PYTHON}' "$@"\n`, { mode: 0o755 })
  const path = `${bin}:${process.env['PATH']}`
  for (const { code } of BLOCKS.filter(({ code: each }) => each.includes('grpc_tools.protoc'))) {
    const generate = code.replace(/^pip.*\n/, '')
    await execa('sh', ['-e', '-c', generate], { cwd: folder, env: { PATH: path } })
  }
  expect(await run('python client.py', path)).toBe('one;two;three;')
  expect(await run('python v2_client.py', path)).toBe('one;two;three;')
})

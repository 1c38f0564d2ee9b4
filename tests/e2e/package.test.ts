import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { installPackage, PACKAGE_ENV as env } from '../support/installed-package.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa, spawn } from '../support/tools.ts'

/** 27 MB when this was written, of which esbuild has 11. */
const LIMIT_BYTES = 35_000_000

/** What a handler author writes, with the types that the package must give. */
const HANDLER = `
import { BaseHandler, sendIntermediatePredictResponse, type Context, type HandlerRequest } from 'torchserve-ts'

export default class Shout extends BaseHandler {
  override async handle(requests: HandlerRequest[], context: Context): Promise<string[]> {
    const words = String(requests[0]?.['body']).split(' ')
    for (const word of words) {
      await sendIntermediatePredictResponse([word.toUpperCase()], context.requestIds, 'Intermediate', 200, context)
    }
    return ['']
  }
}
`

/** The same as CommonJS: Node.js 20.19 and later `require` ES modules. */
const COMMON_JS_HANDLER = `
const { BaseHandler } = require('torchserve-ts')

module.exports = class Whisper extends BaseHandler {
  async handle(requests) {
    return requests.map(({ body }) => String(body).toLowerCase())
  }
}
`

const COMMON_JS_TEST = `
const { runHandler } = require('torchserve-ts/testing')
const { generateModelArchive } = require('torchserve-ts/archiver')
const Whisper = require('./whisper.cjs')

runHandler(Whisper, ['ONE TWO']).then(({ responses }) => {
  console.log(JSON.stringify([responses[0].items, typeof generateModelArchive]))
})
`

const COMMON_JS_TYPES = `
import { BaseHandler, type HandlerRequest } from 'torchserve-ts'

class Whisper extends BaseHandler {
  override handle(requests: HandlerRequest[]): string[] {
    return requests.map(({ body }) => String(body).toLowerCase())
  }
}
export = Whisper
`

const TSCONFIG = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    noEmit: true,
    types: [],
    skipLibCheck: false,
  },
  files: ['handler.ts', 'common-js.cts'],
}

let folder: string
let tarball: string

beforeAll(async () => {
  folder = tempDir()
  writeFileSync(join(folder, 'handler.ts'), HANDLER)
  writeFileSync(join(folder, 'whisper.cjs'), COMMON_JS_HANDLER)
  writeFileSync(join(folder, 'test.cjs'), COMMON_JS_TEST)
  writeFileSync(join(folder, 'common-js.cts'), COMMON_JS_TYPES)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  tarball = await installPackage(folder)
}, 180_000)

const packageFolder = (): string => join(folder, 'node_modules', 'torchserve-ts')
const installed = (): string[] => readdirSync(packageFolder())
const bin = (name: string): string => join(folder, 'node_modules', '.bin', name)
const ours = (name: string): string => join(REPOSITORY, 'node_modules', '.bin', name)

describe('the packed package, installed in an empty folder', () => {
  test('is small', () => {
    expect(sizeOf(join(folder, 'node_modules'))).toBeLessThan(LIMIT_BYTES)
  })

  test('brings no machine-learning runtime and none of the repository beyond what runs', () => {
    const packages = readdirSync(join(folder, 'node_modules'))
    expect(packages.filter((name) => /llama|onnx|tensor/.test(name))).toEqual([])
    expect(installed()).toEqual(expect.not.arrayContaining(['tests', 'model-store', 'benchmarks']))
  })

  test('brings its licence and the documentation that --help names', async () => {
    expect(installed()).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'CHANGELOG.md']))
    const { stdout } = await execa(bin('torchserve-ts'), ['--help'], { cwd: folder, env })
    const named = stdout.match(/\S+\.md/g) ?? []
    expect(named.map((path) => basename(path))).toEqual(['command-line.md', 'configuration.md'])
    expect(named.filter((path) => !existsSync(join('/', path)))).toEqual([])
  })

  test('is built with commands that can be run, so that a linked one survives a build', () => {
    const { bin: commands } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      bin: Record<string, string>
    }
    for (const path of Object.values(commands)) accessSync(join(REPOSITORY, path), constants.X_OK)
  })

  test('has types for handler authors, in ES modules and in CommonJS', async () => {
    await execa(ours('tsc'), ['-p', folder], { env })
  })

  test('is described as publint and arethetypeswrong want it', async () => {
    const { stdout } = await execa(ours('publint'), [tarball, '--strict'], { cwd: folder, env })
    expect(stdout).toContain('All good!')
    // CommonJS gets the ES modules: a second copy would have other classes than the worker.
    await execa(ours('attw'), [tarball, '--profile', 'esm-only'], { cwd: folder, env })
  })

  test('can be required by CommonJS', async () => {
    const { stdout } = await execa(process.execPath, ['test.cjs'], { cwd: folder, env })
    expect(JSON.parse(stdout)).toEqual([['one two'], 'function'])
  })

  test('runs from the tarball with npx, outside of any project', async () => {
    const flags = ['--yes', '--prefer-offline', '--package', tarball, '--', 'torchserve-ts', '--version']
    const { stdout } = await execa('npx', flags, { cwd: tempDir(), env })
    expect(stdout).toMatch(/^TorchServe-TS Version is /)
  })

  test('packs handlers of TypeScript and CommonJS, and streams from them', async () => {
    for (const [name, handler] of [
      ['shout', 'handler.ts'],
      ['whisper', 'whisper.cjs'],
    ]) {
      const flags = `--model-name ${name} --version 1.0 --handler ${handler} --export-path store`
      await execa(bin('torch-model-archiver-ts'), flags.split(' '), { cwd: folder, env })
    }
    expect(readdirSync(join(folder, 'store'))).toEqual(['shout.mar', 'whisper.mar'])
    writeFileSync(
      join(folder, 'config.properties'),
      [
        'inference_address=http://127.0.0.1:0',
        'management_address=http://127.0.0.1:0',
        'metrics_address=http://127.0.0.1:0',
        'grpc_inference_port=0',
        'grpc_management_port=0',
        'default_workers_per_model=1',
      ].join('\n'),
    )
    const server = spawn(
      bin('torchserve-ts'),
      [
        '--start',
        '--foreground',
        '--ncs',
        '--model-store',
        'store',
        '--models',
        'all',
        '--disable-token-auth',
      ],
      { cwd: folder, env: { ...env, TEMP: folder }, stdio: ['ignore', 'pipe', 'pipe'] },
    )
    try {
      const port = await new Promise<number>((resolve, reject) => {
        const errors: string[] = []
        let inference = 0
        readLines(server.stderr, (line) => errors.push(line))
        readLines(server.stdout, (line) => {
          inference ||= Number(/Inference REST API.*:(\d+)/.exec(line)?.[1] ?? 0)
          if (line.includes('Model server started.')) resolve(inference)
        })
        server.once('exit', () => {
          reject(new Error(errors.join('\n')))
        })
      })
      const headers = { 'content-type': 'text/plain' }
      const shout = await rawRequest(port, '/predictions/shout', { headers, body: 'one two three' })
      expect(shout.chunks.map(String)).toEqual(['ONE', 'TWO', 'THREE'])
      const whisper = await rawRequest(port, '/predictions/whisper', { headers, body: 'ONE' })
      expect(whisper.body).toBe('one')
    } finally {
      const exited = new Promise((resolve) => server.once('exit', resolve))
      server.kill('SIGTERM')
      await exited
    }
  })

  test('says its version', async () => {
    const { stdout } = await execa(bin('torchserve-ts'), ['--version'], { cwd: folder, env })
    expect(stdout).toMatch(/^TorchServe-TS Version is \d+\.\d+\.\d+$/)
  })
})

/** Bytes of all files; one with several links counts once. */
function sizeOf(path: string): number {
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => statSync(join(entry.parentPath, entry.name)))
  return [...new Map(files.map(({ ino, size }) => [ino, size])).values()].reduce((sum, size) => sum + size, 0)
}

import {
  accessSync,
  constants,
  existsSync,
  readFileSync,
  readdirSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { readLines } from '../../frontend/workers/read-lines.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa, spawn } from '../support/tools.ts'

const LIMIT_BYTES = 65_000_000

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

const TSCONFIG = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    strict: true,
    noEmit: true,
    types: [],
    skipLibCheck: false,
  },
  files: ['handler.ts'],
}

let folder: string
const env = { ...process.env, NODE_OPTIONS: '' }

beforeAll(async () => {
  folder = tempDir()
  // Other test files use dist at the same time, which prepack would delete and build again.
  const pack = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder]
  const { stdout } = await execa('npm', pack, { cwd: REPOSITORY, env })
  writeFileSync(join(folder, 'package.json'), '{"name":"somebody","private":true,"type":"module"}')
  writeFileSync(join(folder, 'handler.ts'), HANDLER)
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  const install = [
    'install',
    '--no-audit',
    '--no-fund',
    '--prefer-offline',
    '--omit=dev',
    `./${stdout.trim()}`,
  ]
  await execa('npm', install, { cwd: folder, env })
}, 180_000)

const packageFolder = (): string => join(folder, 'node_modules', 'torchserve-ts')
const installed = (): string[] => readdirSync(packageFolder())
const bin = (name: string): string => join(folder, 'node_modules', '.bin', name)

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
    expect(named).toEqual([expect.stringMatching(/docs\/configuration\.md$/)])
    expect(named.map((path) => existsSync(join('/', path)))).toEqual([true])
  })

  test('is built with commands that can be run, so that a linked one survives a build', () => {
    const { bin: commands } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
      bin: Record<string, string>
    }
    for (const path of Object.values(commands)) accessSync(join(REPOSITORY, path), constants.X_OK)
  })

  test('has types for handler authors', async () => {
    await execa(
      process.execPath,
      [join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc'), '-p', folder],
      { env },
    )
  })

  test('packs a TypeScript handler and streams from it', async () => {
    const flags = [
      '--model-name',
      'shout',
      '--version',
      '1.0',
      '--handler',
      'handler.ts',
      '--export-path',
      'store',
    ]
    await execa(bin('torch-model-archiver-ts'), flags, { cwd: folder, env })
    expect(readdirSync(join(folder, 'store'))).toEqual(['shout.mar'])
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
      const { chunks } = await rawRequest(port, '/predictions/shout', {
        headers: { 'content-type': 'text/plain' },
        body: 'one two three',
      })
      expect(chunks.map(String)).toEqual(['ONE', 'TWO', 'THREE'])
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

function sizeOf(path: string): number {
  return readdirSync(path, { recursive: true, withFileTypes: true }).reduce(
    (sum, entry) => sum + (entry.isFile() ? statSync(join(entry.parentPath, entry.name)).size : 0),
    0,
  )
}

import {
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
  appendFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { packEcho } from '../support/echo-archive.ts'
import { CLI, REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** Files of pytorch/serve, as they are there. */
const TORCHSERVE = join(REPOSITORY, 'tests', 'cli', 'torchserve')

const MODELS = ['mnist', 'squeezenet1_1']

/** A folder with the configuration, the scripts beside it, and a store with archives. */
async function folderOf(config: string): Promise<string> {
  const folder = tempDir()
  cpSync(dirname(join(TORCHSERVE, config)), folder, { recursive: true })
  mkdirSync(join(folder, 'model_store'))
  for (const name of MODELS) await packEcho(join(folder, 'model_store'), name)
  mkdirSync(join(folder, 'bin'))
  symlinkSync(CLI, join(folder, 'bin', 'torchserve-ts'))
  mkdirSync(join(folder, 'tmp'))
  return folder
}

/** What the platform sets for its configuration. */
const SAGEMAKER = {
  SAGEMAKER_MODEL_STORE: 'model_store',
  SAGEMAKER_BIND_TO_PORT: '8080',
  SAGEMAKER_RESPONSE_TIMEOUT: '60',
  SAGEMAKER_NUM_MODEL_WORKERS: '1',
  SAGEMAKER_HANDLER: '',
  SAGEMAKER_MAX_RESPONSE_SIZE: '6553500',
  SAGEMAKER_MAX_REQUEST_SIZE: '6553500',
}

interface Run {
  status: number | undefined
  lines: string[]
}

async function shell(folder: string, line: string): Promise<Run> {
  const env = {
    PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
    TEMP: join(folder, 'tmp'),
    NODE_OPTIONS: '',
    ...SAGEMAKER,
  }
  const { exitCode, all } = await execa('sh', ['-c', line], { cwd: folder, env, reject: false, all: true })
  return { status: exitCode, lines: all.split('\n') }
}

/** The lines below a title, up to the next empty one. */
function below(lines: readonly string[], title: string): string[] {
  const at = lines.findIndex((line) => line.startsWith(title))
  if (at < 0) return []
  const rest = lines.slice(at + 1)
  const end = rest.indexOf('')
  return rest.slice(0, end < 0 ? undefined : end)
}

test.each([
  ['docker/config.properties', [] as string[]],
  ['kubernetes/AKS/config.properties', MODELS],
  ['kubernetes/kserve/config.properties', ['mnist']],
  ['kubernetes/tests/docker/config.properties', []],
  ['ts/configs/sagemaker_config.properties', []],
  ['examples/stateful/config.properties', []],
  ['examples/LLM/llama/chat_app/docker/config.properties', []],
  ['examples/usecases/llm_diffusion_serving_app/docker/config.properties', []],
  ['examples/large_models/deepspeed_mii/config.properties', MODELS],
  ['benchmarks/config.properties', []],
])('what migrate prints for %s starts it', async (config, models) => {
  const folder = await folderOf(config)
  const file = join(folder, config.slice(config.lastIndexOf('/') + 1))
  const before = readdirSync(folder)
  const stores = readFileSync(file, 'utf8').includes('workflow_store') ? '--workflow-store model_store' : ''
  const migrate = `torchserve-ts migrate ${file} --model-store model_store ${stores}`
  const { status, lines } = await shell(folder, migrate)
  expect([status, below(lines, 'By hand:')]).toEqual([0, []])
  expect(readdirSync(folder)).toEqual(before)
  const checked = lines.flatMap((line) => /^Model (\w+), version 1\.0, runtime node/.exec(line)?.[1] ?? [])
  expect(checked.sort()).toEqual(models.length === 0 ? MODELS : models)
  expect(lines.includes('#load_models=all')).toBe(models.length === 0)

  appendFileSync(file, `\n${below(lines, 'Add to').join('\n')}\n`)
  // Other tests run on this machine too.
  const hosts = /^inference_address=(\S+):/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 'http://127.0.0.1'
  for (const key of ['inference', 'management', 'metrics'])
    appendFileSync(file, `${key}_address=${hosts}:0\n`)
  for (const key of ['inference', 'management']) appendFileSync(file, `grpc_${key}_port=0\n`)

  const start = below(lines, 'Start:')
  expect(start).toHaveLength(1)
  const started = await shell(folder, `${start[0]} --wait > start.log 2>&1`)
  const log = readFileSync(join(folder, 'start.log'), 'utf8')
  expect([started.status, log]).toEqual([0, expect.stringContaining('Model server started.\n')])
  const { lines: shown } = await shell(folder, 'torchserve-ts status --json')
  const [server] = JSON.parse(shown.join('\n')) as [{ models: { modelName: string }[] }]
  expect(server.models.map(({ modelName }) => modelName).sort()).toEqual(models)
  expect((await shell(folder, 'torchserve-ts --stop')).status).toBe(0)
})

test('migrate says what an open server needs', async () => {
  const folder = await folderOf('docker/config.properties')
  const { lines } = await shell(
    folder,
    'torchserve-ts migrate --model-store model_store --workflow-store model_store --dt',
  )
  expect(below(lines, 'Add to')).toEqual([
    expect.stringMatching(/^# Other machines can reach inference_address=http:\/\/0\.0\.0\.0:8080, /),
    'allow_insecure_exposure=true',
    expect.stringMatching(/^# Without tokens the server refuses the public names /),
    '#allowed_hosts=public.name',
    '#cors_allowed_origin=https://app.example.com',
    expect.stringMatching(/^# The start loads no model: clients register them/),
    '#load_models=all',
  ])
  expect(below(lines, 'Start:')).toEqual([
    'torchserve-ts --start --ts-config config.properties --model-store model_store --workflow-store model_store --disable-token-auth',
  ])
})

test('what no line of a configuration mends is left to do by hand, with status 1', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'bin'))
  mkdirSync(join(folder, 'tmp'))
  symlinkSync(CLI, join(folder, 'bin', 'torchserve-ts'))
  writeFileSync(join(folder, 'config.properties'), 'certificate_file=/none/cert.pem\njob_queue_size=many\n')
  const { status, lines } = await shell(folder, 'torchserve-ts migrate')
  expect(status).toBe(1)
  expect(below(lines, 'By hand:')).toEqual([
    'config.properties:1: certificate_file names /none/cert.pem, which is not here',
    'No model_store is configured: name the folder of the archives with --model-store',
  ])
  expect(below(lines, 'Add to')).toEqual([
    '# config.properties:2: job_queue_size must be a whole number from 1 to 2147483647, found many',
    'job_queue_size=100',
  ])
  expect((await shell(folder, 'torchserve-ts migrate nowhere')).lines[0]).toContain('nowhere')
})

test('archives are checked also where a file of the configuration is not here', async () => {
  const folder = await folderOf('docker/config.properties')
  appendFileSync(join(folder, 'config.properties'), '\ncertificate_file=/none/cert.pem\n')
  writeFileSync(join(folder, 'model_store', 'broken.mar'), 'no archive')
  const { status, lines } = await shell(
    folder,
    'torchserve-ts migrate --model-store model_store --workflow-store model_store',
  )
  expect(status).toBe(1)
  expect(below(lines, 'By hand:')).toEqual([
    expect.stringContaining('certificate_file names /none/cert.pem, which is not here'),
    expect.stringMatching(/^broken\.mar: /),
  ])
  expect(lines.filter((line) => line.startsWith('Model '))).toHaveLength(MODELS.length)
})

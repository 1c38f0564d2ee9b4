import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { packPython } from '../../../tests/support/python/archive.ts'
import { STAND_IN, TORCHSERVE_PACKAGES } from '../../../tests/support/python/environments.ts'
import { hasJava } from '../../../tests/support/python/torchserve.ts'
import { freePorts } from '../../../tests/support/ports.ts'
import { streamCall, unaryCall } from '../../grpc-calls.ts'
import { installPython, pythonFolder } from '../../peers/cache.ts'
import { batchConfig, isBatchModel, type BatchModel, type Model, type Peer } from '../../peers/peer.ts'
import { startProgram } from '../../peers/start.ts'
import { scratch } from '../../scratch.ts'
import type { Target } from '../target.ts'

const HANDLERS = fileURLToPath(new URL('../../handlers/', import.meta.url))
const FILES: Record<Model, string> = {
  echo: 'python/echo.py',
  hundred: 'python/hundred.py',
  timed: 'peers/torchserve/timed.py',
  idle: 'peers/torchserve/idle.py',
}
/** With it a worker takes requests while others wait: TorchServe's page "LLM deployment with vLLM". */
const SIDE_BY_SIDE = 'asyncCommunication: true\n'
const BATCHES = 'peers/torchserve/batch.py'
let starts = 0

/** How torchserve-ts is asked too. */
export const TORCHSERVE_API: Pick<Peer, 'health' | 'rest' | 'grpc'> = {
  health: '/ping',
  rest: (model, text) => ({ path: `/predictions/${model}`, headers: {}, body: Buffer.from(text) }),
  grpc: (model, text) => (model === 'echo' ? unaryCall() : streamCall(model, text)),
}

/** The handlers use nothing of PyTorch: a stand-in replaces the two names that the worker imports. */
export const torchserve: Peer = {
  name: 'torchserve',
  title: 'TorchServe',
  packages: [...TORCHSERVE_PACKAGES, 'Java 17', 'a stand-in for torch'],
  settings: [
    'default_workers_per_model=1 (with the default, one per processor)',
    'async_logging=true ("Advanced configuration": for higher throughput)',
    'disable_system_metrics=true, --disable-token-auth, --ncs; everything else by default: batchSize 1',
    'idle streams: asyncCommunication: true and an async handler ("LLM deployment with vLLM")',
  ],
  ...TORCHSERVE_API,
  recommendedWorkers: availableParallelism(),
  install,
  start,
  startBatches: (models) => start(models, 1),
}

async function install(): Promise<readonly string[]> {
  if (!(await hasJava())) throw new Error('It needs Java 17.')
  return installPython('torchserve', TORCHSERVE_PACKAGES, [STAND_IN])
}

async function start(models: readonly (Model | BatchModel)[], workers: number): Promise<Target> {
  const folder = scratch(`torchserve-${starts++}`)
  const store = join(folder, 'store')
  mkdirSync(join(folder, 'tmp'), { recursive: true })
  const { bin, python } = pythonFolder('torchserve')
  for (const model of models) await pack(model, store)
  const ports = await freePorts(5)
  const config = join(folder, 'config.properties')
  writeFileSync(config, configuration(ports, workers))
  const flags = ['--start', '--foreground', '--ncs', '--disable-token-auth', '--ts-config', config]
  return startProgram(
    torchserve,
    models,
    [join(bin, 'torchserve'), ...flags, '--model-store', store, '--models', 'all'],
    { restOrigin: `http://127.0.0.1:${ports[0]!}`, grpcOrigin: `http://127.0.0.1:${ports[3]!}` },
    {
      cwd: folder,
      // The command itself takes the Python from PATH.
      env: {
        PATH: [join(python, '..'), process.env['PATH']].join(delimiter),
        LOG_LOCATION: join(folder, 'logs'),
        METRICS_LOCATION: join(folder, 'logs'),
        TEMP: join(folder, 'tmp'),
        TMPDIR: join(folder, 'tmp'),
      },
    },
  )
}

async function pack(model: Model | BatchModel, store: string): Promise<void> {
  const handler = readFileSync(join(HANDLERS, isBatchModel(model) ? BATCHES : FILES[model]), 'utf8')
  const config = configOf(model)
  await packPython({ ...pythonFolder('torchserve'), realTorch: false }, store, {
    ...{ name: model, handler, ...(config === undefined ? {} : { config }) },
  })
}

function configOf(model: Model | BatchModel): string | undefined {
  if (isBatchModel(model)) return batchConfig(model)
  return model === 'idle' ? SIDE_BY_SIDE : undefined
}

function configuration(ports: readonly number[], workers: number): string {
  const [inference, management, metrics, grpcInference, grpcManagement] = ports
  return `inference_address=http://127.0.0.1:${inference!}
management_address=http://127.0.0.1:${management!}
metrics_address=http://127.0.0.1:${metrics!}
grpc_inference_port=${grpcInference!}
grpc_management_port=${grpcManagement!}
default_workers_per_model=${workers}
async_logging=true
disable_system_metrics=true
`
}

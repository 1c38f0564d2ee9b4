import { copyFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { execa } from 'execa'
import { freePorts } from '../../../tests/support/ports.ts'
import { installPython, pythonFolder, pythonPackages } from '../../peers/cache.ts'
import { element, inferCall } from '../../peers/open-inference.ts'
import type { Model, Peer, RestCall } from '../../peers/peer.ts'
import { startProgram } from '../../peers/start.ts'
import { scratch } from '../../scratch.ts'
import type { Target } from '../target.ts'

const HANDLERS = fileURLToPath(new URL('../../handlers/peers/triton/', import.meta.url))
const FILES: Record<Model, string> = { echo: 'echo', hundred: 'hundred', timed: 'timed', idle: 'timed' }
const PACKAGES = ['nvidia-pytriton==0.7.0']
const ONE_INSTANCE = 'instance_group [{ kind: KIND_CPU count: 1 }]'
const BATCHED = 'max_batch_size: 32\ndynamic_batching { }'
const SINGLE = 'max_batch_size: 1'
const DECOUPLED = 'max_batch_size: 1\nmodel_transaction_policy { decoupled: true }'
let starts = 0

/** With dynamic batching, which its page "Optimization" says brings the most for most models. */
export const tritonBatching: Peer = make('triton-batching', 'Triton, batching', BATCHED)

/** With its default scheduler: one request at a time, as all other servers here. */
export const triton: Peer = make('triton', 'Triton', SINGLE)

function make(name: string, title: string, batches: string): Peer {
  const peer: Peer = {
    name,
    title,
    packages: PACKAGES,
    settings: [
      `${ONE_INSTANCE}, its default for processors`,
      `echo: ${batches.replace('\n', ', ')}; binary tensors ("Binary Tensor Data Extension")`,
      `streams: ${DECOUPLED.replace('\n', ', ')} ("Decoupled Backends and Models"), REST by generate_stream (Server-Sent Events)`,
      'timed and idle streams: async def execute, so that many run in one instance',
      'Python backend in its own process, shared memory in between; --allow-metrics=false, --log-info=false, --disable-auto-complete-config',
    ],
    health: '/v2/health/ready',
    recommendedWorkers: 1,
    install: () => installPython('triton', PACKAGES),
    start: (models, workers) => start(peer, batches, models, workers),
    rest: (model, text) => (model === 'echo' ? binaryCall(text) : generateCall(model, text)),
    grpc: (model, text) => inferCall(model === 'echo' ? 'ModelInfer' : 'ModelStreamInfer', model, text),
  }
  return peer
}

async function start(
  peer: Peer,
  batches: string,
  models: readonly Model[],
  workers: number,
): Promise<Target> {
  const folder = scratch(`triton-${starts++}`)
  for (const model of models) addModel(join(folder, 'models', model), model, batches, workers)
  const packages = await pythonPackages('triton')
  const server = join(packages, 'pytriton/tritonserver')
  const backends = await backendsOf(server, folder)
  const [rest, grpc] = (await freePorts(2)) as [number, number]
  const { bin, python } = pythonFolder('triton')
  return startProgram(
    peer,
    models,
    [
      join(server, 'bin/tritonserver'),
      ...['--model-repository', join(folder, 'models'), '--backend-directory', backends],
      ...[
        '--http-address=127.0.0.1',
        `--http-port=${rest}`,
        '--grpc-address=127.0.0.1',
        `--grpc-port=${grpc}`,
      ],
      ...['--allow-metrics=false', '--log-info=false', '--disable-auto-complete-config'],
    ],
    { restOrigin: `http://127.0.0.1:${rest}`, grpcOrigin: `http://127.0.0.1:${grpc}` },
    {
      cwd: folder,
      // As pytriton itself starts it; the stub needs the library of its Python.
      env: {
        PATH: [bin, process.env['PATH']].join(delimiter),
        PYTHONPATH: packages,
        LD_LIBRARY_PATH: [join(packages, 'nvidia_pytriton.libs'), await libraries(python)].join(delimiter),
      },
    },
  )
}

function addModel(folder: string, model: Model, batches: string, workers: number): void {
  mkdirSync(join(folder, '1'), { recursive: true })
  copyFileSync(join(HANDLERS, `${FILES[model]}.py`), join(folder, '1/model.py'))
  writeFileSync(
    join(folder, 'config.pbtxt'),
    `backend: "python"
${model === 'echo' ? batches : DECOUPLED}
input [{ name: "text" data_type: TYPE_STRING dims: [1] }]
output [{ name: "out" data_type: TYPE_STRING dims: [1] }]
${ONE_INSTANCE.replace('1', String(workers))}
`,
  )
}

/** The wheel has a stub of the Python backend for each version of Python; the server wants one beside it. */
async function backendsOf(server: string, folder: string): Promise<string> {
  const backends = join(folder, 'backends')
  cpSync(join(server, 'backends'), backends, { recursive: true })
  const version = await ask(
    pythonFolder('triton').python,
    'import sys; print("%d.%d" % sys.version_info[:2])',
  )
  const stub = 'triton_python_backend_stub'
  copyFileSync(join(server, 'python_backend_stubs', version, stub), join(backends, 'python', stub))
  return backends
}

function libraries(python: string): Promise<string> {
  return ask(python, 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')
}

async function ask(python: string, code: string): Promise<string> {
  const { stdout } = await execa(python, ['-c', code], { stdin: 'ignore' })
  return stdout.trim()
}

/** JSON, then the tensor's bytes. */
function binaryCall(text: string): RestCall {
  const bytes = element(text)
  const tensor = {
    name: 'text',
    shape: [1, 1],
    datatype: 'BYTES',
    parameters: { binary_data_size: bytes.length },
  }
  const output = { name: 'out', parameters: { binary_data: true } }
  const json = Buffer.from(JSON.stringify({ inputs: [tensor], outputs: [output] }))
  return {
    path: '/v2/models/echo/infer',
    headers: {
      'content-type': 'application/octet-stream',
      'inference-header-content-length': String(json.length),
    },
    body: Buffer.concat([json, bytes]),
  }
}

function generateCall(model: Model, text: string): RestCall {
  return {
    path: `/v2/models/${model}/generate_stream`,
    headers: { 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ text })),
  }
}

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from '@jest/globals'
import { call, inferenceV2Client, type Message } from '../../support/grpc-clients.ts'
import { packPython } from '../../support/python/archive.ts'
import { PYTHON_MS } from '../../support/python/client.ts'
import { describePython } from '../../support/python/test-python.ts'
import { rawRequest } from '../../support/raw-http.ts'
import { REPOSITORY } from '../../support/server-process.ts'
import { tempDir } from '../../support/temp.ts'
import { zipOf } from '../../support/zip.ts'
import { manifests } from '../resources.ts'
import { podOf, RECONCILED } from './reconciled.ts'
import { type Container, RunningPod } from './running-pod.ts'

/** The example of KServe (docs/samples/v1beta1/torchserve/v1), but for ports that others here may have. */
const PROPERTIES = `inference_address=http://0.0.0.0:8085
management_address=http://0.0.0.0:8085
metrics_address=http://0.0.0.0:8082
grpc_inference_port=0
grpc_management_port=0
enable_metrics_api=true
metrics_format=prometheus
number_of_netty_threads=4
job_queue_size=10
enable_envvars_config=true
install_py_dep_per_model=true
model_store=/mnt/models/model-store
model_snapshot={"name":"startup.cfg","modelCount":1,"models":{"mnist":{"1.0":{"defaultVersion":true,"marName":"mnist.mar","minWorkers":1,"maxWorkers":5,"batchSize":1,"maxBatchDelay":5000,"responseTimeout":120}}}}
`
/** Of KServe's own runtime (config/runtimes/kserve-torchserve.yaml), which names the program of its image. */
const KSERVES_ARGS = [
  'torchserve',
  '--start',
  '--model-store=/mnt/models/model-store',
  '--ts-config=/mnt/models/config/config.properties',
  '--disable-token-auth',
]
/** cancel_grace_ms, and a second for the rest. */
const KILL_SECONDS = 11

const running: RunningPod[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.stop('SIGKILL')))
})

describe('KServe puts an InferenceService for TorchServe on our runtime', () => {
  const runtime = manifests('kserve').find(({ metadata }) => metadata.name === 'kserve-torchserve')!
  const [ours] = runtime.spec['containers'] as [Required<Container>]

  test.each([
    ['torchserve', 'v1', 'kserve', ['--disable-token-auth', '--enable-model-api'], 8080],
    ['torchserve-mnist-v2', 'v2', 'kservev2', [], 8080],
    ['mnist-grpc', 'grpc-v2', 'kservev2', [], 8081],
  ])('%s', (name, protocol, envelope, args, port) => {
    const { containers, terminationGracePeriodSeconds } = podOf(name).spec
    const [container] = containers
    expect(container).toMatchObject({ image: 'torchserve-ts-python:latest', args: [...ours.args, ...args] })
    expect(container!.env).toEqual([
      { name: 'PROTOCOL_VERSION', value: protocol },
      ...ours.env.map((each) => ({ ...each, value: each.value!.replace(/^\{\{.*\}\}$/, envelope) })),
    ])
    const { spec } = RECONCILED.services.find(({ metadata }) => metadata.name === `${name}-predictor`)!
    expect(spec.ports.map(({ targetPort }) => targetPort)).toEqual([port])
    const drain = Number(ours.env.find((each) => each.name === 'TS_DRAIN_TIMEOUT')!.value)
    const preStop = container!.lifecycle!.preStop!.sleep!.seconds
    expect(preStop + drain + KILL_SECONDS).toBeLessThanOrEqual(terminationGracePeriodSeconds)
  })
})

await describePython('a Python archive in the layout of the storage initializer', ({ bin, ...python }) => {
  test(
    'answers on the paths of KServe’s V1',
    async () => {
      const { folder, store } = volume()
      const rows = join(REPOSITORY, 'tests', 'support', 'python', 'handlers', 'rows.py')
      await packPython({ bin, ...python }, store, { name: 'mnist', handler: readFileSync(rows, 'utf8') })
      const pod = await started('torchserve', folder, { programs: bin })
      expect(await post(pod, '/v1/models/mnist:predict', { instances: [1, 2] })).toEqual({
        predictions: [2, 3],
      })
      expect(await pod.end()).toBe(0)
    },
    PYTHON_MS,
  )
})

describe('a TypeScript archive in the layout of the storage initializer', () => {
  const V2 = { name: 'in', shape: [1], datatype: 'INT64' }

  test.each([
    ['of ours', undefined],
    ['of KServe’s own runtime', KSERVES_ARGS],
  ])('answers on the paths of V2, with the arguments %s', async (_, args) => {
    const { folder } = await withRows()
    const pod = await started('torchserve-mnist-v2', folder, { args })
    expect(
      await post(pod, '/v2/models/mnist/infer', { id: 'mine', inputs: [{ ...V2, data: [5] }] }),
    ).toMatchObject({ id: 'mine', model_name: 'mnist', outputs: [{ ...V2, data: [6] }] })
    expect(await pod.end()).toBe(0)
  })

  test('answers over gRPC', async () => {
    const { folder } = await withRows()
    const pod = await started('mnist-grpc', folder)
    const client = inferenceV2Client(pod.portOf('openInference'), 'mlserver')
    const contents = { int64_contents: [5] }
    const asked = { model_name: 'mnist', inputs: [{ ...V2, contents }] }
    const { outputs } = await call<Message, { outputs: { contents: Message }[] }>(
      client,
      client['ModelInfer']!,
      asked,
    )
    client.close()
    expect(String((outputs[0]!.contents['int64_contents'] as unknown[])[0])).toBe('6')
    expect(await pod.end()).toBe(0)
  })
})

/** What the storage initializer leaves, without archives. */
function volume(): { folder: string; store: string } {
  const folder = join(tempDir(), 'models')
  mkdirSync(join(folder, 'config'), { recursive: true })
  mkdirSync(join(folder, 'model-store'))
  writeFileSync(join(folder, 'config', 'config.properties'), PROPERTIES)
  return { folder, store: join(folder, 'model-store') }
}

/** With an archive whose handler adds one to each row that the envelope has unwrapped. */
async function withRows(): Promise<{ folder: string }> {
  const { folder, store } = volume()
  const model = { modelName: 'mnist', modelVersion: '1.0', handler: 'rows.mjs' }
  const archive = await zipOf({
    'MAR-INF/MANIFEST.json': JSON.stringify({ runtime: 'node', model }),
    'rows.mjs': 'export const handle = (rows) => rows.map(({ data }) => data[0] + 1)\n',
  })
  writeFileSync(join(store, 'mnist.mar'), archive)
  return { folder }
}

async function started(
  service: string,
  models: string,
  { args, programs }: { args?: string[] | undefined; programs?: string } = {},
): Promise<RunningPod> {
  const object = structuredClone(podOf(service))
  if (args !== undefined) object.spec.containers[0]!.args = args
  const pod = await RunningPod.start(object, tempDir(), models, programs)
  running.push(pod)
  await pod.server.until(() => pod.isReady(), Boolean, PYTHON_MS)
  return pod
}

async function post(pod: RunningPod, path: string, body: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const answer = await rawRequest(pod.portOf('inference'), path, { headers, body: JSON.stringify(body) })
  return JSON.parse(answer.body)
}

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const HANDLER = `
const env = (name) => process.env[name]
export const handle = (requests, context) => requests.map(() => ({
  gpuId: context.properties.gpuId, device: context.properties.device, pixels: context.properties.limitMaxImagePixels,
  visible: env('CUDA_VISIBLE_DEVICES'), order: env('CUDA_DEVICE_ORDER'), port: env('MASTER_PORT'), threads: env('OMP_NUM_THREADS'), rayon: env('RAYON_NUM_THREADS'), secret: env('MY_SECRET'),
}))
`

/** A model that tells what its worker was given. */
function modelFolder(store: string, name: string, config: string): void {
  mkdirSync(join(store, name))
  writeFileSync(join(store, name, 'handler.mjs'), HANDLER)
  writeFileSync(join(store, name, 'model-config.yaml'), config)
}

test('workers get their GPU and their environment, and describe tells', async () => {
  const bin = tempDir()
  const gpus = ['a', 'b', 'c'].map((id, index) => `GPU ${index}: NVIDIA (UUID: GPU-${id})`)
  writeFileSync(
    join(bin, 'nvidia-smi'),
    `#!/bin/sh\ncase $1 in -L) echo '${gpus.join('\n')}';; *) printf '0, 1, 2, 3\\n1, 4, 5, 6\\n2, 7, 8, 9\\n';; esac\n`,
    { mode: 0o755 },
  )
  const modelStore = tempDir()
  modelFolder(modelStore, 'one', 'minWorkers: 1\nmaxWorkers: 1\n')
  modelFolder(modelStore, 'chosen', 'minWorkers: 1\nmaxWorkers: 1\ndeviceIds: [2]\n')
  modelFolder(modelStore, 'wrong', 'minWorkers: 1\nmaxWorkers: 1\ndeviceIds: [7]\ndeviceType: cpu\n')
  const group =
    'minWorkers: 3\nmaxWorkers: 3\nparallelType: tp\ntorchrun:\n  nproc-per-node: 2\n  OMP_NUMBER_THREADS: 5\n'
  modelFolder(modelStore, 'group', group)
  modelFolder(modelStore, 'large', 'parallelType: tp\nparallelLevel: 4\n')
  const server = await startServer({
    modelStore,
    models: ['one', 'chosen', 'wrong'],
    config: {
      initial_worker_port: 9100,
      initial_distribution_port: 30000,
      blacklist_env_vars: 'MY_.*',
      limit_max_image_pixels: false,
    },
    env: { PATH: `${bin}:${process.env['PATH']!}`, MY_SECRET: 'x', CUDA_VISIBLE_DEVICES: '2,0,1' },
  })
  const ask = async (model: string): Promise<unknown> => {
    const { body } = await rawRequest(server.ports.inference, `/predictions/${model}`)
    return JSON.parse(body)
  }
  for (const model of ['one', 'chosen', 'wrong']) await server.ready(model)
  // After the others: whoever starts first has the first GPU in turn.
  expect((await server.manage('POST', '/models?url=group&synchronous=true')).status).toBe(200)

  expect(await ask('one')).toMatchObject({
    gpuId: 1,
    device: 'cuda:0',
    visible: 'GPU-a',
    order: 'PCI_BUS_ID',
    pixels: false,
  })
  expect(await ask('one')).not.toHaveProperty('secret')
  expect(await ask('one')).toMatchObject({ threads: '1', rayon: '1' })
  expect(await ask('chosen')).toMatchObject({ gpuId: 2, visible: 'GPU-b' })
  expect(await ask('wrong')).toMatchObject({ gpuId: -1, device: 'cpu', visible: '2,0,1' })
  expect(await ask('group')).toMatchObject({
    gpuId: 0,
    visible: 'GPU-c,GPU-a',
    port: '30000',
    threads: '5',
    rayon: '5',
  })

  const [one] = await server.describe('one')
  const usage = 'gpuId::1 utilization.gpu::1 % utilization.memory::2 % memory.used::3 MiB'
  expect(one).toMatchObject({
    deviceType: 'gpu',
    workers: [
      { id: expect.stringMatching(/^910\d$/) as unknown as string, gpu: true, threads: 1, gpuUsage: usage },
    ],
  })
  expect((await server.describe('chosen'))[0]).toMatchObject({ deviceIds: [2] })
  const [wrong] = await server.describe('wrong')
  expect(wrong).toMatchObject({ deviceType: 'cpu', workers: [{ gpu: false, gpuUsage: 'N/A' }] })
  expect(wrong).not.toHaveProperty('deviceIds')
  // Three GPUs hold one group of two.
  const [group1] = await server.describe('group')
  expect(group1).toMatchObject({ minWorkers: 1, maxWorkers: 1, workers: [{ id: '30000', threads: 5 }] })

  expect((await server.manage('POST', '/models?url=large')).json).toEqual({
    code: 500,
    type: 'WorkerInitializationException',
    message: 'No enough gpu devices for model:large parallelLevel:4',
  })
  expect(await server.lines('deviceIds: GPU 7 does not exist; the list is ignored')).toHaveLength(1)
  await server.stop()
})

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { ModelSettings } from '../../frontend/models/model-settings.ts'
import { Devices, type DeviceLease } from '../../frontend/workers/devices.ts'
import { findGpus, gpuUsage } from '../../frontend/workers/gpus.ts'
import { tempDir } from '../support/temp.ts'

function model(settings: Partial<ModelSettings> = {}): ModelSettings {
  return { deviceType: 'gpu', parallelLevel: 0, ...settings } as ModelSettings
}

function take(devices: Devices, settings: ModelSettings, times: number): (readonly number[])[] {
  return Array.from({ length: times }, () => devices.assign(settings).ids)
}

describe('GPUs for workers', () => {
  test('of plain models go round over all GPUs, whatever the model, and the first worker gets GPU 1', () => {
    const devices = new Devices(3)
    expect([...take(devices, model(), 2), ...take(devices, model(), 2)]).toEqual([[1], [2], [0], [1]])
    expect(take(new Devices(1), model(), 2)).toEqual([[0], [0]])
  })

  test('go to the GPU that has the fewest workers when some have left', () => {
    const devices = new Devices(2)
    const leases: DeviceLease[] = [1, 2, 3, 4].map(() => devices.assign(model()))
    expect(leases.map(({ ids }) => ids[0])).toEqual([1, 0, 1, 0])
    leases[0]!.release()
    leases[0]!.release()
    leases[2]!.release()
    expect(take(devices, model(), 2)).toEqual([[1], [1]])
  })

  test('with deviceIds go round over these', () => {
    const own = model({ deviceIds: [3, 1] })
    expect(take(new Devices(4), own, 3)).toEqual([[3], [1], [3]])
  })

  test('of a rank group are neighbours, or neighbours in deviceIds, and what does not fill a group is left', () => {
    const group = model({ parallelLevel: 2 })
    expect(take(new Devices(5), group, 3)).toEqual([
      [0, 1],
      [2, 3],
      [0, 1],
    ])
    expect(take(new Devices(8), model({ parallelLevel: 2, deviceIds: [7, 5, 3] }), 1)).toEqual([[7, 5]])
  })

  test('are none on CPU, and none where there is no GPU', () => {
    expect(take(new Devices(2), model({ deviceType: 'cpu' }), 1)).toEqual([[]])
    expect(take(new Devices(0), model(), 1)).toEqual([[]])
  })
})

/** A machine with four GPUs, as far as nvidia-smi tells. */
function fakeMachine(variables: Record<string, string> = {}): NodeJS.ProcessEnv {
  const folder = tempDir()
  const script = join(folder, 'nvidia-smi')
  writeFileSync(
    script,
    `#!${process.execPath}
const columns = { index: (i) => i, uuid: (i) => 'GPU-0000' + i, 'utilization.gpu': () => 30, 'utilization.memory': () => 4, 'memory.used': (i) => 100 * i }
const fields = process.argv[2].split('=')[1].split(',')
for (let i = 0; i < 4; i++) console.log(fields.map((field) => columns[field](i)).join(', '))
`,
  )
  chmodSync(script, 0o755)
  return { PATH: folder, ...variables }
}

describe('the GPUs of a machine', () => {
  test('are what nvidia-smi lists, at most number_of_gpu', async () => {
    expect(await findGpus(undefined, fakeMachine())).toEqual(['0', '1', '2', '3'])
    expect(await findGpus(2, fakeMachine())).toEqual(['0', '1'])
  })

  test('are none without nvidia-smi', async () => {
    expect(await findGpus(undefined, { PATH: tempDir() })).toEqual([])
    expect(await findGpus(0, fakeMachine())).toEqual([])
  })

  test.each([
    ['3,1', ['3', '1']],
    ['GPU-00002', ['GPU-00002']],
    ['2,-1,3', ['2']],
    ['9', []],
    ['', []],
  ])('are those that CUDA_VISIBLE_DEVICES=%j lets through', async (CUDA_VISIBLE_DEVICES, expected) => {
    expect(await findGpus(undefined, fakeMachine({ CUDA_VISIBLE_DEVICES }))).toEqual(expected)
  })

  test('say what they do, under the ids that they have here', async () => {
    const usage = await gpuUsage(['3', 'GPU-00001'], fakeMachine())
    expect([...usage].sort()).toEqual([
      [0, 'gpuId::0 utilization.gpu::30 % utilization.memory::4 % memory.used::300 MiB'],
      [1, 'gpuId::1 utilization.gpu::30 % utilization.memory::4 % memory.used::100 MiB'],
    ])
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import type { ModelSettings } from '../../frontend/models/model-settings.ts'
import {
  deviceEnv,
  type DeviceLease,
  Devices,
  findGpus,
  gpuUsage,
  hasParts,
} from '../../frontend/workers/gpus.ts'
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

  test('count the workers of all models, however these choose theirs', () => {
    const devices = new Devices(4)
    expect(take(devices, model({ deviceIds: [1] }), 2)).toEqual([[1], [1]])
    expect(take(devices, model({ parallelLevel: 2 }), 1)).toEqual([[2, 3]])
    expect(take(devices, model(), 3)).toEqual([[0], [2], [3]])
    expect(take(devices, model({ deviceIds: [1, 0] }), 1)).toEqual([[0]])
  })

  test('are none on CPU, and none where there is no GPU', () => {
    expect(take(new Devices(2), model({ deviceType: 'cpu' }), 1)).toEqual([[]])
    expect(take(new Devices(0), model(), 1)).toEqual([[]])
  })
})

/** A machine with this tool, as far as it prints. */
function machine(tool: string, script: string, variables: Record<string, string> = {}): NodeJS.ProcessEnv {
  const folder = tempDir()
  writeFileSync(join(folder, tool), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return { PATH: `${folder}:/bin:/usr/bin`, ...variables }
}

/** With four GPUs. */
function fakeMachine(variables: Record<string, string> = {}): NodeJS.ProcessEnv {
  const gpus = [0, 1, 2, 3].map((id) => `GPU ${id}: NVIDIA H100 (UUID: GPU-0000${id}-ab)`)
  const usage = [0, 1, 2, 3].map((id) => `${id}, 30, 4, ${100 * id}`)
  const script = `case $1 in -L) echo '${gpus.join('\n')}';; *) echo '${usage.join('\n')}';; esac`
  return machine('nvidia-smi', script, variables)
}

const names = async (...args: Parameters<typeof findGpus>): Promise<string[]> =>
  (await findGpus(...args)).list.map(({ name }) => name)

/** What nvidia-smi -L prints where the first of two GPUs is divided. */
const DIVIDED = `GPU 0: NVIDIA A100 (UUID: GPU-aa)
  MIG 1g.5gb      Device  0: (UUID: MIG-11)
  MIG 1g.5gb      Device  1: (UUID: MIG-22)
GPU 1: NVIDIA A100 (UUID: GPU-bb)`

describe('the GPUs of a machine', () => {
  test('are what nvidia-smi lists, at most number_of_gpu', async () => {
    const all = [0, 1, 2, 3].map((id) => `GPU-0000${id}-ab`)
    expect(await names(undefined, fakeMachine())).toEqual(all)
    expect(await names(2, fakeMachine())).toEqual(all.slice(0, 2))
  })

  test('are none without a tool', async () => {
    expect(await findGpus(undefined, { PATH: tempDir() }, tempDir())).toEqual({
      list: [],
      vendor: undefined,
      warning: undefined,
    })
    expect(await names(0, fakeMachine())).toEqual([])
  })

  test.each([
    ['3,1', ['GPU-00003-ab', 'GPU-00001-ab']],
    ['GPU-00002', ['GPU-00002-ab']],
    ['2,-1,3', ['GPU-00002-ab']],
    ['9', []],
    ['', []],
  ])('are those that CUDA_VISIBLE_DEVICES=%j lets through', async (CUDA_VISIBLE_DEVICES, expected) => {
    expect(await names(undefined, fakeMachine({ CUDA_VISIBLE_DEVICES }))).toEqual(expected)
  })

  test('that are divided are their MIG devices, of which a worker sees its own', async () => {
    const gpus = await findGpus(undefined, machine('nvidia-smi', `echo '${DIVIDED}'`))
    expect(gpus.list.map(({ name }) => name)).toEqual(['MIG-11', 'MIG-22', 'GPU-bb'])
    expect(hasParts(gpus)).toBe(true)
    expect(deviceEnv([1], gpus)).toEqual({ CUDA_VISIBLE_DEVICES: 'MIG-22', CUDA_DEVICE_ORDER: 'PCI_BUS_ID' })
    expect(deviceEnv([], gpus)).toEqual({ CUDA_DEVICE_ORDER: 'PCI_BUS_ID' })
    const one = machine('nvidia-smi', `echo '${DIVIDED}'`, { CUDA_VISIBLE_DEVICES: 'MIG-22' })
    expect(await names(undefined, one)).toEqual(['MIG-22'])
  })

  test('of AMD and Intel are found by their tools, and workers get their variables', async () => {
    const cards = JSON.stringify({ card0: { 'Card Series': 'AMD INSTINCT MI250' }, card1: {}, card2: {} })
    const rocm = machine(
      'rocm-smi',
      `[ "$*" = '--showproductname -P --json' ] && echo 'WARNING: x' && echo '${cards}'`,
      {
        HIP_VISIBLE_DEVICES: '2,0',
      },
    )
    const amd = await findGpus(undefined, rocm)
    expect(amd.list.map(({ name }) => name)).toEqual(['2', '0'])
    expect(deviceEnv([1], amd)).toEqual({ HIP_VISIBLE_DEVICES: '0' })
    const dump = 'Device ID,Device Name,Memory Physical Size\n0,"Intel(R) Max 1550",65536.00 MiB\n1,"B",1 MiB'
    const intel = await findGpus(
      undefined,
      machine('xpu-smi', `[ "$*" = 'discovery --dump 1,2,16' ] && echo '${dump}'`),
    )
    expect(deviceEnv([0, 1], intel)).toEqual({ XPU_VISIBLE_DEVICES: '0,1', ZE_AFFINITY_MASK: '0,1' })
  })

  test('that nobody can list are told', async () => {
    const dev = tempDir()
    writeFileSync(join(dev, 'nvidia0'), '')
    expect((await findGpus(undefined, { PATH: tempDir() }, dev)).warning).toBe(
      `${join(dev, 'nvidia0')} exists, but nvidia-smi is not installed, so models run on the CPU. In a container, NVIDIA_DRIVER_CAPABILITIES must contain utility and compute`,
    )
    const broken = machine('nvidia-smi', 'echo "NVIDIA-SMI has failed because of the driver."; exit 9')
    expect((await findGpus(undefined, broken)).warning).toBe(
      'nvidia-smi failed, so models run on the CPU: NVIDIA-SMI has failed because of the driver.',
    )
    expect((await findGpus(0, broken)).warning).toBeUndefined()
  })

  test('say what they do, under the ids that they have here', async () => {
    const gpus = await findGpus(undefined, fakeMachine({ CUDA_VISIBLE_DEVICES: '3,GPU-00001' }))
    expect([...(await gpuUsage(gpus, fakeMachine()))]).toEqual([
      [0, 'gpuId::0 utilization.gpu::30 % utilization.memory::4 % memory.used::300 MiB'],
      [1, 'gpuId::1 utilization.gpu::30 % utilization.memory::4 % memory.used::100 MiB'],
    ])
  })
})

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { measureAccelerators } from '../../frontend/observe/metrics/accelerators.ts'
import { cpuUtilization, disk, memory } from '../../frontend/observe/metrics/system-metrics.ts'
import { tempDir } from '../support/temp.ts'

test('memory and disk add up', async () => {
  const { MemoryUsed, MemoryAvailable, MemoryUtilization } = memory()
  expect(MemoryUtilization).toBeCloseTo((MemoryUsed! / (MemoryUsed! + MemoryAvailable!)) * 100, 0)
  const { DiskUsage, DiskAvailable, DiskUtilization } = await disk()
  expect(DiskUtilization).toBeCloseTo((DiskUsage! / (DiskUsage! + DiskAvailable!)) * 100, 0)
})

test('the CPU’s load is that of the time between two looks', () => {
  const before = { busy: 1000, total: 4000 }
  expect(cpuUtilization(before, { busy: 1250, total: 5000 })).toEqual({ CPUUtilization: 25 })
  expect(cpuUtilization(before, before)).toEqual({ CPUUtilization: 0 })
})

/** A machine whose tool prints this when it is called with these arguments. */
function machineWhere(tool: string, args: string, output: string): NodeJS.ProcessEnv {
  const folder = tempDir()
  const script = `#!/bin/sh\n[ "$*" = '${args}' ] || exit 2\nprintf '%s\\n' '${output}'\n`
  writeFileSync(join(folder, tool), script, { mode: 0o755 })
  return { PATH: folder }
}

const NVIDIA =
  '--query-gpu=index,utilization.gpu,utilization.memory,memory.used --format=csv,noheader,nounits'
const AMD = '--showid --showproductname --showuse --showmemuse --showmeminfo vram -P --json'
const INTEL = 'dump -d -1 -n 1 -m 0,5'

/** As TorchServe's sample_amd_updated_metrics.json. */
const CARDS = JSON.stringify({
  card0: {
    'GPU use (%)': '25',
    'GPU Memory Allocated (VRAM%)': '75',
    'VRAM Total Used Memory (B)': '51527024640',
  },
  card1: { 'GPU use (%)': 'N/A' },
  system: {},
})

test.each([
  [
    'nvidia-smi',
    NVIDIA,
    '0, 37, 12, 1024\n1, [N/A], 0, 5\nNo devices were found',
    [
      { gpu: '0', utilization: 37, memoryUtilization: 12, memoryUsed: 1024 },
      { gpu: '1', utilization: undefined, memoryUtilization: 0, memoryUsed: 5 },
    ],
  ],
  [
    'rocm-smi',
    AMD,
    CARDS,
    [
      { gpu: '0', utilization: 25, memoryUtilization: 75, memoryUsed: 49140 },
      { gpu: '1', utilization: undefined, memoryUtilization: undefined, memoryUsed: undefined },
    ],
  ],
  [
    'xpu-smi',
    INTEL,
    'Timestamp, DeviceId, GPU Utilization (%), GPU Memory Utilization (%)\n06:14:46.000, 0, 0.50, 14.61',
    [{ gpu: '0', utilization: 0.5, memoryUtilization: 14.61, memoryUsed: undefined }],
  ],
])('what %s says is taken, what it does not know is left out', async (tool, args, output, expected) => {
  expect(await measureAccelerators(machineWhere(tool, args, output))).toEqual(expected)
  expect(await measureAccelerators({ PATH: tempDir() })).toBeUndefined()
})

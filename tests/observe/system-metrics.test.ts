import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { measureGpus } from '../../frontend/observe/metrics/gpus.ts'
import { cpuUtilization, disk, memory } from '../../frontend/observe/metrics/machine.ts'
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

/** Where nvidia-smi, called for these very fields, prints this. */
function machineWhere(output: string): NodeJS.ProcessEnv {
  const folder = tempDir()
  const script = `#!/bin/sh
[ "$1" = --query-gpu=index,utilization.gpu,utilization.memory,memory.used ] || exit 2
echo '${output}'
`
  writeFileSync(join(folder, 'nvidia-smi'), script, { mode: 0o755 })
  return { PATH: folder }
}

test('what nvidia-smi says is taken, what it does not know is left out', async () => {
  const machine = machineWhere('0, 37, 12, 1024\n1, [N/A], 0, 5\nNo devices were found')
  expect(await measureGpus(machine)).toEqual([
    { device: '0', values: { GPUUtilization: 37, GPUMemoryUtilization: 12, GPUMemoryUsed: 1024 } },
    { device: '1', values: { GPUMemoryUtilization: 0, GPUMemoryUsed: 5 } },
  ])
  expect(await measureGpus({ PATH: tempDir() })).toBeUndefined()
})

import { expect, test } from '@jest/globals'
import { parseGpus } from '../../frontend/metrics/gpus.ts'
import { cpuUtilization, disk, memory } from '../../frontend/metrics/machine.ts'

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

test('what nvidia-smi says is taken, what it does not know is left out', () => {
  expect(parseGpus('0, 37, 12, 1024\n1, [N/A], 0, 5\nNo devices were found\n')).toEqual([
    { device: '0', values: { GPUUtilization: 37, GPUMemoryUtilization: 12, GPUMemoryUsed: 1024 } },
    { device: '1', values: { GPUMemoryUtilization: 0, GPUMemoryUsed: 5 } },
  ])
})

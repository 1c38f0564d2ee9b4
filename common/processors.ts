import { readFileSync } from 'node:fs'
import { availableParallelism, totalmem } from 'node:os'
import { dirname, join } from 'node:path'

/**
 * Number of processors that this process may use at the same time, at least 1: those that it may run on, and
 * no more than the CPU limit of its container (Linux control groups, v1 and v2), a fraction counted whole.
 * Node.js before 22 does not know such limits.
 * @param root where `/proc` and `/sys` are
 */
export function processors(root = '/'): number {
  return Math.max(1, Math.min(availableParallelism(), Math.ceil(cpuLimit(root))))
}

/** Bytes of memory of this machine, or of its container (Linux control groups). */
export function memoryBytes(): number {
  // Without a limit it is 0, or more than the machine has.
  return Math.min(process.constrainedMemory() || Infinity, totalmem())
}

/** Processors by the control groups of this process, each of which may have a limit. */
function cpuLimit(root: string): number {
  const lines = read(join(root, 'proc/self/cgroup'))?.split('\n') ?? []
  const limits = lines.flatMap((line) => {
    const [, controllers = '', group = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    if (controllers === '')
      return groupsAbove(group).map((path) => limitV2(join(root, 'sys/fs/cgroup', path)))
    if (!controllers.split(',').includes('cpu')) return []
    return groupsAbove(group).map((path) => limitV1(join(root, 'sys/fs/cgroup/cpu', path)))
  })
  return Math.min(Infinity, ...limits)
}

/** The group and those above it. In a container only some of them can be seen. */
function groupsAbove(group: string): string[] {
  const path = join('/', group)
  return path === '/' ? [path] : [path, ...groupsAbove(dirname(path))]
}

/** `cpu.max`: microseconds of CPU time in each period, or `max`, and the period. */
function limitV2(folder: string): number {
  const [quota, period] = read(join(folder, 'cpu.max'))?.split(' ').map(Number) ?? []
  return ratio(quota, period)
}

/** A quota of -1 is none. */
function limitV1(folder: string): number {
  return ratio(
    Number(read(join(folder, 'cpu.cfs_quota_us'))),
    Number(read(join(folder, 'cpu.cfs_period_us'))),
  )
}

function ratio(quota = NaN, period = NaN): number {
  return quota > 0 && period > 0 ? quota / period : Infinity
}

function read(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

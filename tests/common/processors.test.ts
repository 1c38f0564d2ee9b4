import { mkdirSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from '@jest/globals'
import { processors } from '../../common/processors.ts'
import { tempDir } from '../support/temp.ts'

const all = availableParallelism()

/** A root folder with these files. */
function rootWith(files: Readonly<Record<string, string>>): string {
  const root = tempDir()
  for (const [path, text] of Object.entries(files)) {
    const file = join(root, path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
  return root
}

const V2 = { 'proc/self/cgroup': '0::/a/b\n' }
const V1 = { 'proc/self/cgroup': '5:cpuset:/\n4:cpu,cpuacct:/docker/x\n3:memory:/docker/x\n0::/\n' }

test.each<[string, Record<string, string>, number]>([
  ['no control groups', {}, all],
  ['no limit (v2)', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': 'max 100000\n' }, all],
  ['a limit (v2)', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': '100000 100000\n' }, 1],
  ['half a processor', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': '50000 100000\n' }, 1],
  ['a fraction counted whole', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': '100001 100000\n' }, Math.min(2, all)],
  ['a limit of a group above', { ...V2, 'sys/fs/cgroup/a/cpu.max': '100000 100000\n' }, 1],
  ['a limit of the container, whose groups cannot be seen', { ...V2, 'sys/fs/cgroup/cpu.max': '9 10\n' }, 1],
  ['more than there are', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': '100000000 100000\n' }, all],
  [
    'a limit (v1)',
    {
      ...V1,
      'sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us': '90000\n',
      'sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us': '100000\n',
    },
    1,
  ],
  [
    'no limit (v1)',
    {
      ...V1,
      'sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us': '-1\n',
      'sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us': '100000\n',
    },
    all,
  ],
  ['text that is no limit', { ...V2, 'sys/fs/cgroup/a/b/cpu.max': 'one two\n' }, all],
])('processors with %s', (_title, files, count) => {
  expect(processors(rootWith(files))).toBe(count)
})

test('the machine of this test has at least one', () => {
  expect(processors()).toBeGreaterThanOrEqual(1)
})

import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { claimFolder, sweepFolders } from '../../model-archiver/owner-file.ts'
import { tempDir } from '../support/temp.ts'

const NAMES = /^ts-\w+$/
/** Larger than any process number of Linux. */
const NOBODY = '9999999'

/** A folder that this process owns; `change` rewrites what the owner file says. */
function claimed(
  parent: string,
  name: string,
  change?: (place: string, pid: string, started: string) => string[],
): void {
  const folder = join(parent, name)
  mkdirSync(folder, { mode: 0o700 })
  claimFolder(folder)
  if (change === undefined) return
  const owner = join(folder, 'owner')
  const [place, pid, started] = readFileSync(owner, 'utf8').split('\n')
  writeFileSync(owner, change(place!, pid!, started!).join('\n'))
}

test('what an ended process owns is removed, and nothing else', async () => {
  const parent = tempDir()
  claimed(parent, 'ts-ended', (place, _pid, started) => [place, NOBODY, started, ''])
  claimed(parent, 'ts-mine')
  claimed(parent, 'ts-elsewhere', (place, _pid, started) => [
    `${place} of another container`,
    NOBODY,
    started,
  ])
  claimed(parent, 'other-ended', (place, _pid, started) => [place, NOBODY, started])
  claimed(parent, 'ts-nobody', (place, _pid, started) => [place, 'x', started])
  mkdirSync(join(parent, 'ts-unclaimed'))
  writeFileSync(join(parent, 'ts-file'), '')
  expect(await sweepFolders(parent, NAMES)).toEqual(['ts-ended'])
  const kept = ['other-ended', 'ts-elsewhere', 'ts-file', 'ts-mine', 'ts-nobody', 'ts-unclaimed']
  expect(readdirSync(parent).sort()).toEqual(kept)
})

test('a process that got the number of an ended one does not keep its folder', async () => {
  const parent = tempDir()
  claimed(parent, 'ts-again', (place, pid, started) => [place, pid, String(Number(started) - 1)])
  expect(await sweepFolders(parent, NAMES)).toEqual(['ts-again'])
})

test('where no start time is known, a process of that number keeps it', async () => {
  const parent = tempDir()
  claimed(parent, 'ts-runs', (place, pid) => [place, pid, ''])
  claimed(parent, 'ts-ended', (place) => [place, NOBODY, ''])
  expect(await sweepFolders(parent, NAMES)).toEqual(['ts-ended'])
})

test('what others may write to, or what is a link, stays', async () => {
  const parent = tempDir()
  const outside = tempDir()
  const ended = (place: string, _pid: string, started: string): string[] => [place, NOBODY, started]
  claimed(parent, 'ts-shared', ended)
  chmodSync(join(parent, 'ts-shared'), 0o770)
  claimed(parent, 'ts-moved', ended)
  renameSync(join(parent, 'ts-moved'), join(outside, 'target'))
  symlinkSync(join(outside, 'target'), join(parent, 'ts-moved'))
  expect(await sweepFolders(parent, NAMES)).toEqual([])
  expect(readdirSync(outside)).toEqual(['target'])
})

test('a folder is claimed once, and a parent that is missing has nothing to sweep', async () => {
  const parent = tempDir()
  claimed(parent, 'ts-mine')
  expect(() => claimFolder(join(parent, 'ts-mine'))).toThrow('EEXIST')
  expect(await sweepFolders(join(parent, 'missing'), NAMES)).toEqual([])
})

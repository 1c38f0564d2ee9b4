import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import {
  buildCommit,
  commitBefore,
  installsTheSame,
  NothingBefore,
} from '../../benchmarks/regression/state-before.ts'
import { verdict } from '../../benchmarks/regression/verdict.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

describe('the verdict on the rounds of a case', () => {
  /** `below` rounds with a ratio of 0.5, and the others with 1. */
  const rounds = (below: number, of: number): number[] =>
    Array.from({ length: of }, (_, i) => (i < below ? 0.5 : 1))

  test('a case whose median is 0.6 has kept its speed, whatever its CPU time', () => {
    expect(verdict([0.2, 0.3, 0.6, 1, 1], rounds(5, 5))).toBe('kept')
    expect(verdict(rounds(16, 33), rounds(33, 33))).toBe('kept')
  })

  test('a case has dropped when chance rarely puts so many rounds below', () => {
    expect(verdict(rounds(24, 33), rounds(0, 33))).toBe('dropped')
    expect(verdict(rounds(62, 99), rounds(0, 99))).toBe('dropped')
  })

  test('a lower median alone is noise', () => {
    expect(verdict(rounds(23, 33), rounds(0, 33))).toBe('noisy')
    expect(verdict(rounds(61, 99), rounds(0, 99))).toBe('noisy')
  })

  test('a lower median with as much more CPU time is a drop', () => {
    expect(verdict(rounds(18, 33), rounds(23, 33))).toBe('noisy')
    expect(verdict(rounds(18, 33), rounds(24, 33))).toBe('dropped')
  })
})

describe('the state before', () => {
  let root: string
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', ...args], {
      cwd: root,
      encoding: 'utf8',
    }).trim()
  /** Commits a change of the file; returns the commit. */
  const commit = (text: string): string => {
    writeFileSync(join(root, 'file'), text)
    git('add', '.')
    git('commit', '-qm', text)
    return git('rev-parse', 'HEAD')
  }

  beforeEach(() => {
    root = tempDir()
    git('init', '-q', '-b', 'main')
  })

  test('a named commit is taken instead, and must exist', async () => {
    const first = commit('one')
    commit('two')
    commit('three')
    expect(await commitBefore(root, 'HEAD~2')).toBe(first)
    await expect(commitBefore(root, 'nowhere')).rejects.toThrow(
      'SPEED_BEFORE must be a commit of this repository, found nowhere',
    )
  })

  test('a history without the reference has none', async () => {
    commit('one')
    await expect(commitBefore(root)).rejects.toThrow(NothingBefore)
  })

  test('it is built from the files of its commit, and compared with what is installed now', async () => {
    const build = { name: 'n', version: '1.0.0', scripts: { build: 'mkdir dist && cp file dist' } }
    writeFileSync(join(root, 'package.json'), JSON.stringify(build))
    writeFileSync(join(root, 'package-lock.json'), '{}')
    writeFileSync(join(root, '.gitignore'), 'node_modules/\ndist/\n')
    for (const folder of ['node_modules', 'configs', 'libexec', 'proto', 'dist']) {
      mkdirSync(join(root, folder))
      writeFileSync(join(root, folder, 'file'), 'two')
    }
    const first = commit('one')
    const second = commit('two')
    const before = join(tempDir(), 'before')
    await buildCommit(root, first, before)
    expect(await installsTheSame(root, before)).toBe(false)
    const now = join(tempDir(), 'now')
    await buildCommit(root, second, now)
    expect(await installsTheSame(root, now)).toBe(true)
  })

  test('a state that cannot be built is no failure of the change', async () => {
    writeFileSync(join(root, 'package.json'), JSON.stringify({ name: 'n', scripts: { build: 'false' } }))
    writeFileSync(join(root, 'package-lock.json'), '{}')
    const broken = commit('one')
    await expect(buildCommit(root, broken, join(tempDir(), 'before'))).rejects.toThrow(NothingBefore)
  })
})

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { ConfigReader } from '../../frontend/models/config-reader.ts'
import { sandboxSettings, type SandboxSettings } from '../../frontend/models/sandbox-settings.ts'
import { confined } from '../../frontend/workers/sandbox/confine.ts'
import { openPlaces } from '../../frontend/workers/sandbox/open-places.ts'
import type { Guest } from '../../frontend/workers/sandbox/places.ts'
import type { SandboxSupport } from '../../frontend/workers/sandbox/support.ts'
import { settingsOf } from '../config/support.ts'
import { tempDir } from '../support/temp.ts'

function sandboxOf(
  keys: string,
  file: Record<string, unknown>,
): { sandbox: SandboxSettings; warnings: string[] } {
  const reader = new ConfigReader(file)
  const sandbox = sandboxSettings(reader, settingsOf({ file: keys }).settings)
  return { sandbox, warnings: reader.warnings }
}

describe('the sandbox of a model', () => {
  test('is the server’s, and can be tightened by the model', () => {
    expect(sandboxOf('', {}).sandbox).toMatchObject({ mode: 'default', network: true, memory: undefined })
    expect(sandboxOf('', { sandbox: 'strict' }).sandbox).toMatchObject({ mode: 'strict', network: false })
    const file = { sandbox: { network: false, memory: 5, openFiles: 64 } }
    expect(sandboxOf('worker_memory=10', file)).toEqual({
      sandbox: expect.objectContaining({ mode: 'default', network: false, memory: 5, openFiles: 64 }),
      warnings: [],
    })
  })

  test.each([
    ['sandbox=strict', { mode: 'off' }, { mode: 'strict', network: false }],
    ['', { mode: 'off' }, { mode: 'default' }],
    ['worker_network=false', { network: true }, { network: false }],
    ['sandbox=strict', { network: true }, { network: false }],
    ['worker_memory=10', { memory: 11 }, { memory: 10 }],
    ['', { read: ['/data'] }, { read: [] }],
    ['sandbox_by_model=true', { write: ['/data', 'data'] }, { write: ['/data'] }],
    ['', { env: ['SECRET'] }, { env: [] }],
    ['model_env=OTHER_*', { env: ['SECRET', 'OTHER_1'] }, { env: ['OTHER_1'] }],
  ])('is not loosened by the model: %s, %j', (keys, asked, expected) => {
    const { sandbox, warnings } = sandboxOf(keys, { sandbox: asked })
    expect(sandbox).toMatchObject(expected)
    expect(warnings).toHaveLength(1)
  })

  test('can be loosened by the model if the operator says so', () => {
    const file = { sandbox: { mode: 'off', env: ['SECRET'], read: ['/data'], memory: 11 } }
    const { sandbox, warnings } = sandboxOf('sandbox=strict\nsandbox_by_model=true\nworker_memory=10', file)
    expect(sandbox).toMatchObject({ mode: 'off', env: ['*'], network: true, memory: 11, read: ['/data'] })
    expect(warnings).toEqual([])
  })
})

describe('a worker that the system cannot confine', () => {
  const NONE: SandboxSupport = {
    ...{ perl: undefined, landlock: 0, seccomp: false, userNamespaces: false, missing: 'Landlock' },
  }
  const command = { command: 'node', args: ['main.js'], env: {}, cwd: '/' }
  const start = (keys: string, support: SandboxSupport) =>
    confined(command, { sandbox: sandboxOf(keys, {}).sandbox } as Guest, support)

  test('starts in default mode, as it is', () => {
    expect(start('', NONE)).toBe(command)
    expect(start('sandbox=off', NONE)).toBe(command)
  })

  test.each([
    'sandbox=strict',
    'worker_network=false',
    'worker_memory=1',
    'worker_open_files=64',
    'worker_processes=9',
  ])('is not started with %s', (key) => {
    expect(() => start(key, NONE)).toThrow('is not supported here: this system lacks Landlock')
  })

  test('gives up its capabilities without Landlock, too, but not with sandbox=off', () => {
    const support = { ...NONE, perl: '/usr/bin/perl' }
    expect(start('', support).args.slice(1)).toEqual(['--', 'node', 'main.js'])
    expect(start('sandbox=off', support).args.slice(1)).toEqual(['free', '--', 'node', 'main.js'])
  })

  test('keeps its limits where only Landlock is missing', () => {
    const support = { ...NONE, perl: '/usr/bin/perl', seccomp: true }
    expect(start('worker_network=false\nworker_open_files=64', support).args.slice(1)).toEqual([
      ...['limit', '7=64', 'offline', '--', 'node', 'main.js'],
    ])
  })
})

test('a folder with a secret inside is opened without it', () => {
  const root = tempDir()
  for (const folder of ['app/logs', 'app/public', 'lib']) mkdirSync(join(root, folder), { recursive: true })
  for (const file of ['app/key_file.json', 'app/readme']) writeFileSync(join(root, file), '')
  const secret = [join(root, 'app/key_file.json'), join(root, 'app/logs')]
  expect(openPlaces([root, '/elsewhere'], secret).sort()).toEqual(
    ['/elsewhere', join(root, 'app/public'), join(root, 'app/readme'), join(root, 'lib')].sort(),
  )
  expect(openPlaces([secret[1]!], secret)).toEqual([secret[1]])
})

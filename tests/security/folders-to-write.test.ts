import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { answerOf } from '../support/python/client.ts'
import { Command } from '../support/run-command.ts'
import { CLI, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { hostile, whyNot } from './hostile/matrix.ts'

const reason = await whyNot()
const guests = reason === undefined ? describe : describe.skip

guests(`A folder that workers may write to${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  const folder = tempDir()
  const [missing, locked, link, good] = ['missing', 'locked', 'link', 'good'].map((name) =>
    join(tempDir(), name),
  )
  const write = [folder, missing!, locked!, link!, good!]
  const all = hostile('all', { minWorkers: 1, maxWorkers: 1 })
  let server: Server
  const problems: [string, string, string][] = [
    ['has files of the server', folder, `(${join(folder, 'tmp')})`],
    ['is a link to such a folder', link!, `(${join(folder, 'tmp')})`],
    ['is not there', missing!, 'it must exist when they start; make it'],
    ['does not let their user write', locked!, 'their user must have the right to; change its owner or mode'],
  ]
  const warnings = (model: string): string[] =>
    server.output.filter((line) =>
      line.includes(`${model}_1.0 torchserve - Sandbox: workers cannot write to`),
    )

  beforeAll(async () => {
    mkdirSync(locked!, { mode: 0o555 })
    mkdirSync(good!)
    symlinkSync(folder, link!)
    server = await startServer({
      folder,
      models: [
        all,
        hostile('own', { minWorkers: 1, maxWorkers: 1, sandbox: { write: [join(missing!, 'own')] } }),
        hostile('off', { minWorkers: 1, maxWorkers: 1, sandbox: 'off' }),
      ],
      config: { sandbox_write: write.join(), sandbox_by_model: true },
    })
    await Promise.all(['all', 'own', 'off'].map((model) => server.ready(model)))
  })

  test.each(problems)('but that %s is named when the model is loaded', async (_, path, why) => {
    const attack = { attack: 'write', path: join(path, 'new') }
    expect(await answerOf(server, 'all', attack)).toHaveProperty('stopped')
    const lines = warnings('all').filter((line) => line.includes(` ${path}: `))
    expect(lines).toEqual([expect.stringContaining(why)])
  })

  test('has no warning where they can', async () => {
    expect(await answerOf(server, 'all', { attack: 'write', path: join(good!, 'new') })).not.toHaveProperty(
      'stopped',
    )
    expect(warnings('all')).toHaveLength(problems.length)
  })

  test('is named with the model that asks for it', () => {
    expect(warnings('own')).toHaveLength(problems.length + 1)
    expect(warnings('own').at(-1)).toContain(join(missing!, 'own'))
  })

  test('is nobody’s matter without a sandbox', () => {
    expect(warnings('off')).toEqual([])
  })

  test('is checked by --check-config', async () => {
    const env = { ...process.env, TEMP: join(folder, 'tmp') }
    const check = new Command(process.execPath, [CLI, '--check-config', '--models', all], folder, env)
    const { err } = await check.finished()
    const told = err
      .split('\n')
      .filter((line) => line.startsWith('Warning: Sandbox: workers cannot write to'))
    expect(told).toHaveLength(problems.length)
  })
})

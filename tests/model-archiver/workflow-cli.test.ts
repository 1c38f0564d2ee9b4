import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { builtCommand } from './built-command.ts'
import { tempFolder } from './temp.ts'

const archiver = builtCommand('workflow-cli')

describe('torch-workflow-archiver-ts', () => {
  test('writes an archive and says where', async () => {
    const folder = tempFolder({ 'spec.yaml': 'dag: {a: []}', 'h.ts': 'export const a = (x: unknown) => x\n' })
    const flags = ['--workflow-name', 'w', '--spec-file', 'spec.yaml', '--handler', 'h.ts']
    const wrote = { code: 0, out: `Wrote ${join(folder, 'out/w.war')}`, err: '' }
    expect(await archiver(folder, ...flags, '--export-path', 'out')).toEqual(wrote)
    expect((await archiver(folder, ...flags, '--export-path', 'out')).err).toMatch(/already exists/)
    expect(await archiver(folder, ...flags, '--export-path', 'out', '-f')).toEqual(wrote)
  })

  test('shows every flag of torch-workflow-archiver', async () => {
    const { code, out } = await archiver(tempFolder(), '--help')
    expect(code).toBe(0)
    for (const flag of [
      ...['--workflow-name', '--spec-file', '--handler', '--extra-files', '--export-path', '-f, --force'],
      ...['--external', '-h, --help'],
    ])
      expect(out).toContain(flag)
  })

  test.each([
    ['no flags', [], /required option '--workflow-name/],
    ['an unknown flag', ['--workflow-name', 'w', '--spec-file', 's', '--x'], /unknown option '--x'/],
    ['a missing file', ['--workflow-name', 'w', '--spec-file', 'no.yaml'], /--spec-file: file not found/],
    ['a bad graph', ['--workflow-name', 'w', '--spec-file', 'loop.yaml'], /Self loop exception/],
  ])('answers %s with one line and exit code 1', async (_what, flags, line) => {
    const folder = tempFolder({ 'loop.yaml': 'dag: {a: [a]}' })
    const { code, out, err } = await archiver(folder, ...flags)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: [^\n]+$/)
    expect(err).toMatch(line)
    expect(existsSync(join(folder, 'w.war'))).toBe(false)
  })
})

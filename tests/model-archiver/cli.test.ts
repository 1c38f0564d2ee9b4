import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { builtCommand } from './built-command.ts'
import { tempFolder } from './temp.ts'

const archiver = builtCommand('cli')

describe('torch-model-archiver-ts', () => {
  test('writes an archive and says where and what stayed outside', async () => {
    const folder = tempFolder({
      'handler.ts': "import x from 'native'\nexport const handle = () => [x]\n",
      'node_modules/native/package.json': '{"name":"native","gypfile":true}',
      'node_modules/native/index.js': '',
      'a.txt': '',
      'b.txt': '',
    })
    const flags = ['--model-name', 'm', '-v', '1.0', '--handler', 'handler.ts', '--extra-files', 'a.txt, b*']
    expect(await archiver(folder, ...flags, '--export-path', 'store')).toEqual({
      code: 0,
      out: `Wrote ${join(folder, 'store/m.mar')}\nNot in the archive, to be installed where it is served: native`,
      err: '',
    })
    expect(readdirSync(join(folder, 'store'))).toEqual(['m.mar'])
  })

  test('shows every flag of torch-model-archiver', async () => {
    const { code, out } = await archiver(tempFolder(), '--help')
    expect(code).toBe(0)
    for (const flag of [
      ...['--model-name', '-v, --version', '--handler', '--serialized-file', '--model-file', '--extra-files'],
      ...['--runtime', '--export-path', '--archive-format', '-f, --force', '-r, --requirements-file'],
      ...['-c, --config-file', '--external', '-h, --help'],
    ])
      expect(out).toContain(flag)
  })

  const good = ['--model-name', 'm', '--version', '1', '--handler', 'handler.ts']
  test.each([
    ['no flags', [], /required option '--model-name/],
    ['an unknown flag', [...good, '--modle-file', 'x'], /unknown option '--modle-file'/],
    ['a stray word', [...good, 'word'], /too many arguments/],
    ['a flag without its value', ['--model-name'], /argument missing/],
    ['an unknown runtime', [...good, '--runtime', 'ruby'], /Allowed choices are node, python, python3, LSP/],
    [
      'an unknown format',
      [...good, '--archive-format', 'rar'],
      /Allowed choices are default, tgz, no-archive, zip-store/,
    ],
    ['a bad name', [...good, '--model-name', '../m'], /special characters/],
    [
      'a missing file',
      [...good, '--serialized-file', 'no.bin'],
      /--serialized-file: file not found: no\.bin/,
    ],
    ['a handler with a mistake', [...good, '--handler', 'broken.ts'], /broken\.ts:1: /],
    ['an export path that is a file', [...good, '--export-path', 'handler.ts'], /handler\.ts/],
  ])('answers %s with one line and exit code 1', async (_what, flags, line) => {
    const folder = tempFolder({ 'handler.ts': 'export const handle = () => []', 'broken.ts': 'const = 1' })
    const { code, out, err } = await archiver(folder, ...flags)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).toMatch(/^error: [^\n]+$/)
    expect(err).toMatch(line)
    expect(existsSync(join(folder, 'm.mar'))).toBe(false)
  })
})

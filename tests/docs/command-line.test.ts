import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { runCli } from '../../frontend/cli/main.ts'
import { REPOSITORY } from '../support/server.ts'

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'command-line.md'), 'utf8')

test.each([[[]], [['serve']], [['dev']], [['init']], [['migrate']], [['status']]])(
  'the page has every flag of torchserve-ts %s --help',
  async (command) => {
    const lines: string[] = []
    const output = { out: (line: string) => lines.push(line), err: () => undefined }
    const loadServer = (): never => {
      throw new Error('Help starts no server')
    }
    expect(await runCli([...command, '--help'], { output, loadServer })).toBe(0)
    const options = lines
      .join('\n')
      .replace(/^[\s\S]*^Options:$/m, '')
      .replace(/^\S[\s\S]*$/m, '')
    const flags = [...options.matchAll(/^ {2}((?:-\w, )?--[\w-]+(?:, --[\w-]+)*)/gm)].flatMap(([, names]) =>
      names!.split(', '),
    )
    expect(flags.length).toBeGreaterThan(1)
    expect(flags.filter((flag) => !new RegExp(`\`${flag}[ \`]`).test(PAGE))).toEqual([])
  },
)

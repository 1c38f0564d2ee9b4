import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { makeKey } from '../support/signed-archives.ts'
import { execa } from '../support/tools.ts'
import { builtCommand } from './built-command.ts'
import { tempFolder } from './temp.ts'

const archiver = builtCommand('cli')
const workflowArchiver = builtCommand('workflow-cli')
const FLAGS = ['--model-name', 'm', '--version', '1.0', '--handler', 'h.mjs', '--force']
const PACKAGE = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8')) as {
  version: string
}

function source(): string {
  return tempFolder({
    'h.mjs': 'export const a = (x) => x\nexport default { handle: (x) => x }\n',
    'spec.yaml': 'dag: {a: []}',
  })
}

/** With the standard tool and the file that the server would have. */
async function verify(archive: string, key: string): Promise<string> {
  const signers = `${archive}.signers`
  writeFileSync(signers, `me@example.com ${readFileSync(`${key}.pub`, 'utf8')}`)
  const args = ['-Y', 'verify', '-n', 'torchserve-ts-archive', '-f', signers, '-I', 'me@example.com']
  const input = readFileSync(archive)
  const { all } = await execa('ssh-keygen', [...args, '-s', `${archive}.sig`], {
    input,
    reject: false,
    all: true,
  })
  return all
}

describe('--sign', () => {
  test('writes a signature that ssh-keygen finds good; packing without it removes the signature', async () => {
    const folder = source()
    const key = makeKey('me@example.com')
    expect((await archiver(folder, ...FLAGS, '--sign', key)).code).toBe(0)
    expect(await verify(join(folder, 'm.mar'), key)).toMatch(
      /^Good "torchserve-ts-archive" signature for me@/,
    )
    expect((await archiver(folder, ...FLAGS, '--archive-format', 'tgz', '--sign', key)).code).toBe(0)
    expect(await verify(join(folder, 'm.tar.gz'), key)).toMatch(/^Good/)
    expect((await archiver(folder, ...FLAGS)).code).toBe(0)
    expect(existsSync(join(folder, 'm.mar.sig'))).toBe(false)
  })

  test('signs workflow archives', async () => {
    const folder = source()
    const key = makeKey('me@example.com')
    const flags = ['--workflow-name', 'w', '--spec-file', 'spec.yaml', '--handler', 'h.mjs', '--sign', key]
    expect((await workflowArchiver(folder, ...flags)).err).toBe('')
    expect(await verify(join(folder, 'w.war'), key)).toMatch(/^Good/)
  })

  test('leaves nothing and says why when it cannot sign', async () => {
    const folder = source()
    const rsa = join(folder, 'rsa')
    await execa('ssh-keygen', ['-q', '-t', 'rsa', '-b', '2048', '-N', '', '-f', rsa])
    writeFileSync(join(folder, 'no-key'), 'text')
    for (const [key, message] of [
      ['none', /--sign: file not found: none/],
      ['no-key', /--sign: ssh-keygen cannot sign with no-key: /],
      [rsa, /keys ssh-rsa are not supported; use ssh-ed25519/],
    ] as const) {
      const { code, err } = await archiver(folder, ...FLAGS, '--sign', key)
      expect([code, err]).toEqual([1, expect.stringMatching(message)])
    }
    const unpacked = await archiver(folder, ...FLAGS, '--archive-format', 'no-archive', '--sign', rsa)
    expect(unpacked.err).toMatch(/--sign is not supported with --archive-format no-archive/)
    expect([existsSync(join(folder, 'm.mar')), existsSync(join(folder, 'm.mar.sig'))]).toEqual([false, false])
  })
})

test('--version alone prints the version of the archiver', async () => {
  const folder = tempFolder()
  for (const run of [archiver, workflowArchiver])
    for (const flag of ['--version', '-v'])
      expect(await run(folder, flag)).toEqual({ code: 0, out: PACKAGE.version, err: '' })
})

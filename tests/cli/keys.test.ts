import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { parseApiKeys } from '../../frontend/auth/api-keys-file.ts'
import { digestOf } from '../../frontend/auth/gatekeeper.ts'
import { runKeys } from '../../frontend/cli/keys.ts'
import { tempDir } from '../support/temp.ts'
import { spawnSync } from '../support/tools.ts'

/** Starts its arguments with a pipe as stdout whose reader has gone. */
const GONE_READER = 'mkfifo "$FIFO" && exec 3<>"$FIFO" 4>"$FIFO" 3<&- && exec "$@" >&4'

async function keys(...argv: string[]): Promise<{ status: number; out: string[]; err: string[] }> {
  const out: string[] = []
  const err: string[] = []
  const output = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) }
  return { status: await runKeys(argv, output), out, err }
}

test.each(['keys.json', 'keys.yaml'])(
  '%s: a key is printed once, and the file has its hash alone',
  async (name) => {
    const file = join(tempDir(), name)
    const made = await keys(
      'add',
      'app',
      '--scope',
      'inference,metrics',
      '--models',
      'a*',
      'b',
      '--file',
      file,
    )
    expect([made.status, made.out]).toEqual([0, [expect.stringMatching(/^tsk_[\w-]{43}$/)]])
    const [key] = made.out
    const text = readFileSync(file, 'utf8')
    expect(text).not.toContain(key)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const [entry] = parseApiKeys(file, text).keys
    expect(entry).toEqual({
      name: 'app',
      sha256: digestOf(key!),
      scopes: ['inference', 'metrics'],
      models: ['a*', 'b'],
    })
    expect((await keys('add', 'app', '--scope', 'inference', '--file', file)).err).toEqual([
      'torchserve-ts: Key app already exists; use another name',
    ])
    const listed = await keys('list', '--file', file)
    expect(listed.out.join()).toContain('app: scopes inference,metrics models a*,b for ever')
    expect(listed.out.join()).not.toContain(digestOf(key!))
  },
)

test('a revoked key is gone from the file', async () => {
  const file = join(tempDir(), 'keys.json')
  await keys('add', 'app', '--scope', 'inference', '--file', file)
  expect((await keys('revoke', 'app', '--file', file)).out).toEqual(['Revoked app.'])
  expect((await keys('revoke', 'app', '--file', file)).status).toBe(1)
  expect(parseApiKeys(file, readFileSync(file, 'utf8')).keys).toEqual([])
})

test('the rest of a file stays as it is', async () => {
  const file = join(tempDir(), 'keys.yaml')
  const rest =
    '# ours\nclient_certificates:\n  # a comment\n  - { name: a, common_name: a, scopes: [ inference ] }\n'
  writeFileSync(file, rest)
  await keys('add', 'app', '--scope', 'inference', '--file', file)
  expect(readFileSync(file, 'utf8').startsWith(rest)).toBe(true)
})

test('a link stays a link: its target is what changes', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'real'))
  const target = join(folder, 'real', 'keys.json')
  const link = join(folder, 'keys.json')
  writeFileSync(target, '{}', { mode: 0o600 })
  symlinkSync(target, link)
  expect((await keys('add', 'app', '--scope', 'inference', '--file', link)).status).toBe(0)
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
  expect(parseApiKeys(target, readFileSync(target, 'utf8')).keys).toHaveLength(1)
  expect(statSync(target).mode & 0o777).toBe(0o600)
})

test('a link that leads nowhere is refused, and stays', async () => {
  const link = join(tempDir(), 'keys.json')
  symlinkSync('gone.json', link)
  const { status, err } = await keys('add', 'app', '--scope', 'inference', '--file', link)
  expect([status, err.join()]).toEqual([
    1,
    expect.stringContaining('is a symbolic link to a file that does not exist'),
  ])
  expect(lstatSync(link).isSymbolicLink()).toBe(true)
})

test.each([
  ['a scope that is none', ['add', 'a', '--scope', 'all'], 'must be one of inference, management, metrics'],
  ['no scope', ['add', 'a'], 'required option'],
  ['a name with a blank', ['add', 'a b', '--scope', 'inference'], 'keys[0].name must have'],
  ['a time without a unit', ['add', 'a', '--scope', 'inference', '--expires', '9'], 'such as 90d'],
])('%s is refused, and nothing is written', async (_what, argv, why) => {
  const file = join(tempDir(), 'keys.json')
  const { status, err } = await keys(...argv, '--file', file)
  expect([status, err.join()]).toEqual([1, expect.stringContaining(why)])
  expect(() => statSync(file)).toThrow('ENOENT')
})

test('a key that nobody can read does not become valid', async () => {
  const file = join(tempDir(), 'keys.json')
  writeFileSync(file, '{}')
  await keys('add', 'old', '--scope', 'inference', '--file', file)
  const before = readFileSync(file, 'utf8')
  const cli = join(import.meta.dirname, '..', '..', 'dist', 'frontend', 'cli.js')
  const { stderr, status } = spawnSync(
    'bash',
    [
      '-c',
      GONE_READER,
      'bash',
      process.execPath,
      cli,
      'keys',
      'add',
      'new',
      '--scope',
      'inference',
      '--file',
      file,
    ],
    {
      env: { ...process.env, FIFO: join(tempDir(), 'fifo') },
    },
  )
  expect(String(stderr)).toContain('The key could not be written to stdout, so it was not saved')
  expect(status).toBe(1)
  expect(readFileSync(file, 'utf8')).toBe(before)
  expect(existsSync(`${file}.new`)).toBe(false)
})

import { chmodSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from '@jest/globals'
import { tempDir } from '../support/temp.ts'
import { spawnSync } from '../support/tools.ts'
import { whyNot } from './hostile/matrix.ts'

const GUEST = join(import.meta.dirname, '..', '..', 'libexec', 'guest.pl')
const reason = await whyNot()
const [FSETXATTR, SETXATTR] = process.arch === 'arm64' ? [7, 5] : [190, 188]

/** What Perl gets for a file in the sandbox of `default`: the number of an error; 0: none. */
function outcome(program: string, file: string): number {
  const script = `$! = 0; do { ${program} } ? exit 0 : exit $!`
  return run(['perl', '-e', script, file], file).status!
}

function run(command: readonly string[], file: string): ReturnType<typeof spawnSync> {
  const rules = ['files', 'read', '/', 'write', join(file, '..'), 'write', '/dev/null']
  return spawnSync('perl', [GUEST, ...rules, '--', ...command], { cwd: join(file, '..') })
}

const guests = reason === undefined ? describe : describe.skip

guests(`In default mode, whatever the file is,${reason === undefined ? '' : ` (skipped: ${reason})`}`, () => {
  const [EPERM, EOPNOTSUPP] = [1, 95]
  let file: string
  beforeEach(() => {
    file = join(tempDir(), 'file')
    writeFileSync(file, 'text', { mode: 0o600 })
  })

  test.each([
    ['a mode that lets others write', 'chmod 0666, $ARGV[0]', EPERM],
    ['the same of an open file', 'open(F, "<", $ARGV[0]) && chmod 0602, *F', EPERM],
    ['a program of this user', 'chmod 04700, $ARGV[0]', EPERM],
    ['a program of this group', 'chmod 02755, $ARGV[0]', EPERM],
    ['another group', 'chown -1, 4242, $ARGV[0]', EPERM],
    ['another group of an open file', 'open(F, "<", $ARGV[0]) && chown -1, 4242, *F', EPERM],
    [
      'an attribute',
      `my ($name, $value) = qw(user.a b); syscall(${SETXATTR}, $ARGV[0], $name, $value, 1, 0) == 0`,
      EOPNOTSUPP,
    ],
    [
      'an attribute of an open file',
      `my ($name, $value) = qw(user.a b); open(F, "<", $ARGV[0]) && syscall(${FSETXATTR}, fileno F, $name, $value, 1, 0) == 0`,
      EOPNOTSUPP,
    ],
    ['io_uring, which sets attributes too', 'syscall(425, 0, 0) == 0', EPERM],
  ])('%s is refused', (_, program, expected) => {
    expect(outcome(program, file)).toBe(expected)
    expect(statSync(file).mode & 0o7777).toBe(0o600)
  })

  test.each([
    ['the usual modes', 'chmod(0644, $ARGV[0]) && chmod(0775, $ARGV[0]) && chmod(0400, $ARGV[0])'],
    ['owner and group as they are', 'chown(-1, -1, $ARGV[0]) && chown($<, (split " ", $()[0], $ARGV[0])'],
    ['times', 'utime 1, 1, $ARGV[0]'],
  ])('%s can be set', (_, program) => {
    expect(outcome(program, file)).toBe(0)
  })

  test('programs that keep modes and times work', () => {
    chmodSync(file, 0o754)
    const script = 'cp -p file copy && tar cf all.tar file && mkdir out && tar xf all.tar -C out'
    expect(String(run(['sh', '-c', script], file).stderr)).toBe('')
    expect(statSync(join(file, '..', 'copy')).mode & 0o777).toBe(0o754)
    expect(readdirSync(join(file, '..', 'out'))).toEqual(['file'])
  })
})

import { describe, expect, test } from '@jest/globals'
import { parseFlags, type CliFlags } from '../../frontend/cli/flags.ts'
import { commandNames, runCli } from '../../frontend/cli/main.ts'
import { version } from '../../frontend/package-info.ts'

function recorder(): {
  out: string[]
  err: string[]
  output: { out(l: string): void; err(l: string): void }
} {
  const out: string[] = []
  const err: string[] = []
  return { out, err, output: { out: (line) => out.push(line), err: (line) => err.push(line) } }
}

const flagsOf = (line: string): CliFlags | number => parseFlags(line.split(' '), recorder().output)
const mustNotLoad = (): never => {
  throw new Error('The server was loaded')
}

describe('flags', () => {
  test('have the names and short names of TorchServe', () => {
    const long =
      '--start --foreground --ts-config c --model-store s --models a b=c --models d --log-config l --workflow-store w ' +
      '--no-config-snapshots --plugins-path p --cpp-log-config x --disable-token-auth --enable-model-api'
    expect(flagsOf(long)).toEqual({
      start: true,
      foreground: true,
      tsConfig: 'c',
      modelStore: 's',
      models: ['a', 'b=c', 'd'],
      logConfig: 'l',
      workflowStore: 'w',
      configSnapshots: false,
      pluginsPath: 'p',
      cppLogConfig: 'x',
      disableTokenAuth: true,
      enableModelApi: true,
    })
    expect(flagsOf('--start --ncs --dt --ppath p')).toMatchObject({
      configSnapshots: false,
      disableTokenAuth: true,
      pluginsPath: 'p',
    })
  })

  test.each([
    ['--start --stop', "'--stop' cannot be used with option '--start'"],
    ['--start --modelstore s', "unknown option '--modelstore' (Did you mean --model-store?)"],
    ['--start --ts-config', "'--ts-config <file>' argument missing"],
    ['--start words.mar', "'words.mar' must follow a flag; models are named with --models"],
  ])('%s is one line and status 1', (line, message) => {
    const { out, err, output } = recorder()
    expect(parseFlags(line.split(' '), output)).toBe(1)
    expect(out).toEqual([])
    expect(err).toHaveLength(1)
    expect(err[0]).toContain(message)
    expect(err[0]).not.toContain('\n')
  })
})

describe('the name of the program', () => {
  test('is left out where arguments of an image begin with it', () => {
    const { output } = recorder()
    const argv = [
      '--foreground',
      'torchserve',
      '--start',
      '--model-store',
      'torchserve',
      '--models',
      'torchserve',
    ]
    expect(parseFlags(argv, output)).toEqual({
      foreground: true,
      start: true,
      modelStore: 'torchserve',
      models: ['torchserve'],
      configSnapshots: true,
    })
  })

  test.each(['torchserve', 'torchserve-ts'])('is left out as the first word: %s', async (program) => {
    const { out, output } = recorder()
    expect(await runCli([program, 'keys', '--help'], { loadServer: mustNotLoad, output })).toBe(0)
    expect(await runCli([program, '--version'], { loadServer: mustNotLoad, output })).toBe(0)
    expect(out[0]).toContain('Usage: torchserve-ts keys')
    expect(out.at(-1)).toBe(`TorchServe-TS Version is ${version}`)
  })
})

describe('the command', () => {
  test('--version says it in the words of TorchServe', async () => {
    const { out, output } = recorder()
    expect(await runCli(['-v'], { loadServer: mustNotLoad, output })).toBe(0)
    expect(out).toEqual([`TorchServe-TS Version is ${version}`])
  })

  test.each([
    [
      'srve',
      'There is no command srve. Did you mean serve? Commands: dev, init, keys, migrate, serve, status;',
    ],
    ['dve', 'There is no command dve. Did you mean dev? Commands: dev'],
    ['words.mar', 'There is no command words.mar. Commands: dev'],
    ['stpo', 'There is no command stpo. Did you mean stop? Commands: dev'],
  ])('%s is no command, which is one line and status 1', async (word, message) => {
    const { err, output } = recorder()
    expect(await runCli([word, 'x'], { loadServer: mustNotLoad, output })).toBe(1)
    expect(err).toEqual([expect.stringContaining(message)])
  })

  test.each([
    [['stop', '--start'], /'--stop' cannot be used with option '--start'/],
    [['start', '--stop'], /'--stop' cannot be used with option '--start'/],
  ])('%j is the flag, as in TorchServe', async (argv, message) => {
    const { err, output } = recorder()
    expect(await runCli(argv, { loadServer: mustNotLoad, output })).toBe(1)
    expect(err.join('\n')).toMatch(message)
  })

  test.each([
    [
      ['help', 'dev'],
      ['dev', '--help'],
    ],
    [['help', 'start'], ['--help']],
    [['torchserve', 'help'], ['--help']],
    [['version'], ['--version']],
  ])('%j prints the same as %j', async (words, flags) => {
    const [first, second] = [recorder(), recorder()]
    expect(await runCli(words, { loadServer: mustNotLoad, output: first.output })).toBe(0)
    await runCli(flags, { loadServer: mustNotLoad, output: second.output })
    expect(first.out).toEqual(second.out)
  })

  test.each([[['--help']], [['help']], [[]]])('%j prints the help with examples', async (argv) => {
    const { out, output } = recorder()
    expect(await runCli(argv, { loadServer: mustNotLoad, output })).toBe(0)
    expect(out.join('\n')).toMatch(/Usage: torchserve-ts[\s\S]*--model-store[\s\S]*Examples:/)
  })

  test('--help lists every command', async () => {
    const { out, output } = recorder()
    await runCli(['--help'], { loadServer: mustNotLoad, output })
    const [, list = ''] = /^Commands, .*:\n((?: {2}.*\n)+)/m.exec(out.join('\n'))!
    const names = [...list.matchAll(/^ {2}(\w+)/gm)].map(([, name]) => name)
    expect(names.sort()).toEqual(commandNames())
  })
})

import type { ChildProcess } from 'node:child_process'
import { mkdirSync, readFileSync, watch, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { Cli, finished } from './support.ts'
import { FLOOD_LINES } from './flood.ts'

const KEYS = Array.from({ length: 2_000 }, (_, n) => ({
  name: `caller-${n}`,
  sha256: n.toString(16).padStart(64, '0'),
  scopes: ['inference'],
}))

function withKeys(): Cli {
  const cli = new Cli()
  writeFileSync(join(cli.folder, 'keys.json'), JSON.stringify({ keys: KEYS }))
  mkdirSync(join(cli.folder, 'model'))
  writeFileSync(join(cli.folder, 'model', 'handler.mjs'), 'export const handle = (requests) => requests\n')
  return cli
}

test.each([
  ['--help', 0],
  ['--check-config --model-store store', 0],
  ['--check-config --model-store nowhere', 1],
  ['--check-archive model', 0],
  ['keys list --file keys.json', 0],
])('%s keeps its status when nobody reads its output', async (line, status) => {
  const child = withKeys().spawn(line.split(' '))
  const end = finished(child)
  child.stdout!.destroy()
  const { status: found, err } = await end
  expect([found, err.includes('EPIPE')]).toEqual([status, false])
})

test('a pipe gets the whole output of a command, also more than the system holds for it', async () => {
  const { status, out } = await withKeys().run(['keys', 'list', '--file', 'keys.json'])
  expect([status, out.trimEnd().split('\n').length]).toEqual([0, KEYS.length])
})

const LOST = 'Lines for the console are dropped'

/** A server in the foreground, with tokens off. */
function foreground(cli: Cli, env: Record<string, string> = {}): ChildProcess {
  mkdirSync(join(cli.folder, 'logs'))
  const flags = ['--start', '--foreground', '--model-store', 'store', '--disable-token-auth']
  return cli.spawn(flags, env)
}

/** Resolves when the log has the text; rejects if the server ends before. */
function logged(cli: Cli, child: ChildProcess, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = (): void => {
      if (!cli.log.includes(text)) return
      watcher.close()
      resolve()
    }
    const watcher = watch(join(cli.folder, 'logs'), look)
    child.once('exit', (code, signal) => {
      watcher.close()
      reject(new Error(`It ended (${code}, ${signal}) without "${text}":\n${cli.log}`))
    })
    look()
  })
}

test.each<[string, ('stdout' | 'stderr')[]]>([
  ['stdout', ['stdout']],
  ['stdout and stderr', ['stdout', 'stderr']],
])('a foreground server goes on when the reader of its %s has gone', async (_what, closed) => {
  const cli = new Cli()
  const child = foreground(cli)
  for (const name of closed) child[name]!.destroy()
  await logged(cli, child, LOST)
  const end = finished(child)
  child.kill('SIGTERM')
  expect((await end).status).toBe(0)
  expect(cli.log.split(LOST)).toHaveLength(2)
  expect(cli.log).toMatch(/Stopped\n$/)
})

test.each(['SIGTERM', 'SIGINT'] as const)(
  'a full pipe that nobody reads does not delay %s',
  async (signal) => {
    const cli = new Cli()
    const child = foreground(cli, { TRY: 'flood' })
    await logged(cli, child, 'listening')
    child.kill(signal)
    const status = await new Promise((resolve) => child.once('exit', resolve))
    expect(status).toBe(0)
    expect(cli.log.split(LOST)).toHaveLength(2)
  },
)

test('a reader that stops and goes on sees how many lines it has missed', async () => {
  const cli = new Cli()
  const child = foreground(cli, { TRY: 'flood' })
  await logged(cli, child, 'listening')
  const chunks: Buffer[] = []
  await new Promise<void>((resolve) => {
    child.stdout!.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (Buffer.concat(chunks.slice(-2)).includes('lines dropped')) resolve()
    })
  })
  const end = finished(child)
  child.kill('SIGTERM')
  expect((await end).status).toBe(0)
  const text = Buffer.concat(chunks).toString()
  const [, dropped] = /(\d+) lines dropped: nobody read the console/.exec(text) ?? []
  const arrived = text.match(/ line \d+ x+$/gm)!
  // What else the server wrote before that line, or would have written.
  const others = ['listening', 'Test listens', 'Model server started', LOST, 'something odd']
  const missed = others.filter((each) => !text.slice(0, text.indexOf('lines dropped')).includes(each))
  expect(Number(dropped)).toBe(FLOOD_LINES - arrived.length + missed.length)
})

test('a crash with a full pipe ends at once', async () => {
  const cli = new Cli()
  const child = foreground(cli, { TRY: 'flood and crash' })
  const status = await new Promise((resolve) => child.once('exit', resolve))
  expect(status).toBe(1)
  expect(readFileSync(join(cli.folder, 'logs', 'ts_log.log'), 'utf8')).toContain('[FATAL]')
})

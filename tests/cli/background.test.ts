import { existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { isServerProcess } from '../../frontend/cli/pid-file.ts'
import { Cli, finished, START, wrote } from './support.ts'

test('a start returns when the server listens; a second one is refused; a stop ends it and leaves nothing', async () => {
  const cli = new Cli()
  const start = cli.command(START)
  const { status, out, err } = await start.finished()
  const lines = [
    'Test listens on nowhere',
    `The log is also in ${join(cli.folder, 'logs', 'ts_log.log')}`,
    'No models to load: no --models, no load_models, and no snapshot was read (--ncs and --ts-config leave it out)',
    'Model server started.',
  ]
  expect([status, err]).toEqual([0, ''])
  expect(out.split('\n').filter((line) => !line.includes(' main torchserve - '))).toEqual([...lines, ''])
  const pid = cli.pid!
  expect(isServerProcess(pid)).toBe(true)

  const second = await cli.start()
  expect(second.status).toBe(1)
  expect(second.err).toBe(
    `torchserve-ts: TorchServe-TS is already running in this folder (pid ${pid}, pid file ${cli.claim}): ` +
      'stop it with torchserve-ts --stop, or start the second server in another folder\n',
  )
  expect(cli.pid).toBe(pid)

  expect(await cli.run(['--stop'])).toEqual({ status: 0, out: 'TorchServe-TS has stopped.\n', err: '' })
  expect(isServerProcess(pid)).toBe(false)
  expect(existsSync(cli.pidFile)).toBe(false)
  expect(cli.log).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} \[INFO \] main torchserve - listening$/m)
  expect(cli.log).toMatch(/\[WARN \] main torchserve - something odd$/m)
  expect(cli.log).toMatch(/Stopped\n$/)
  for (const line of lines) expect(cli.log).toContain(`[INFO ] main torchserve - ${line}\n`)
  // As in TorchServe, a container's log is the stdout of its start.
  for (const line of ['listening', 'something odd', 'Stopped']) expect(start.out).toContain(`- ${line}\n`)
})

test.each([
  ['a pipe', '$START 2> err | tail -n 1'],
  ['a pipe for both outputs', '$START 2>&1 | tail -n 1'],
  ['a command substitution', 'out=$($START 2> err); echo "$out" | tail -n 1'],
  ['a pipe of a script, in a terminal', `script -qec 'sh -c "$START; true" | tail -n 1' /dev/null`],
])('%s is at its end when the server has started, which goes on', async (_what, line) => {
  const cli = new Cli()
  const { status, out } = await finished(cli.shell(line))
  expect([status, out.trim()]).toEqual([0, 'Model server started.'])
  expect(isServerProcess(cli.pid!)).toBe(true)
  expect((await cli.run(['--stop'])).status).toBe(0)
  expect(cli.log).toMatch(/Stopped\n$/)
  expect(cli.log).not.toContain('Lines for the console are dropped')
})

test('a pipe gets the log of the start, and why it failed', async () => {
  const cli = new Cli()
  const { out } = await finished(cli.shell('$START 2> err | cat'))
  expect(out).toMatch(
    / - listening\n.* - something odd\nTest listens on nowhere\nThe log goes on in \S+ts_log\.log\n/,
  )
  expect((await cli.run(['--stop'])).status).toBe(0)
  const died = await finished(cli.shell('TRY=die $START 2>&1 | cat'))
  expect(died.out).toBe('last words\ntorchserve-ts: the server ended during its start (status 3)\n')
})

test('the entry point of a container has the log of its server after the start too', async () => {
  const cli = new Cli()
  const shell = cli.shell('$START; tail -f /dev/null')
  const end = finished(shell)
  await wrote(shell, 'Model server started.')
  const stopped = wrote(shell, ' - Stopped')
  expect((await cli.run(['--stop'])).status).toBe(0)
  await stopped
  process.kill(-shell.pid!, 'SIGKILL')
  await end
})

test('a stop with nothing to stop says so, also when a stale pid file lies there', async () => {
  const cli = new Cli()
  writeFileSync(cli.pidFile, '1\n')
  const nothing = { status: 0, out: 'TorchServe-TS is not currently running.\n', err: '' }
  expect(await cli.run(['--stop'])).toEqual(nothing)
  expect(existsSync(cli.pidFile)).toBe(false)
})

test.each([
  ['fail', 'torchserve-ts: The archive is broken\n'],
  ['defect', 'torchserve-ts: x is not a function\n'],
])('a start that ends with "%s" is one line, also in the log, and status 1', async (way, err) => {
  const cli = new Cli()
  expect(await cli.start({ TRY: way })).toEqual({ status: 1, out: '', err })
  expect(existsSync(cli.pidFile)).toBe(false)
  const foreground = await cli.start({ TRY: way }, '--foreground')
  expect(foreground).toEqual({ status: 1, out: '', err })
  const line = `[ERROR] main torchserve - The start failed: ${err.replace('torchserve-ts: ', '')}`
  expect(cli.log.split(line)).toHaveLength(3)
})

test.each(['/proc/none', '/proc/none/below'])(
  'a start with the temporary folder %s ends with one line',
  async (TEMP) => {
    const cli = new Cli()
    const err =
      `torchserve-ts: The temporary folder ${TEMP} must be a folder that can be made: set TEMP to another one ` +
      "(ENOENT: no such file or directory, mkdir '/proc/none')\n"
    expect(await cli.start({ TEMP })).toEqual({ status: 1, out: '', err })
  },
)

test('a start with the longest startup timeout is not taken for late', async () => {
  const cli = new Cli()
  writeFileSync(join(cli.folder, 'config.properties'), 'default_startup_timeout=2147483')
  const { status, err } = await cli.command(START).finished()
  expect([status, err]).toEqual([0, ''])
  expect((await cli.run(['--stop'])).status).toBe(0)
})

test('with the log level debug, the detail follows', async () => {
  const cli = new Cli()
  writeFileSync(join(cli.folder, 'config.properties'), 'debug=true')
  const { err } = await cli.start({ TRY: 'fail' })
  expect(err).toBe('torchserve-ts: The archive is broken\na stack\n')
})

test('a bad configuration is one line and status 1', async () => {
  const cli = new Cli()
  writeFileSync(join(cli.folder, 'config.properties'), 'job_queue_size=x')
  const { status, out, err } = await cli.start()
  expect([status, out]).toEqual([1, ''])
  expect(err).toMatch(/^torchserve-ts: config.properties:1: job_queue_size must be a whole number.*\n$/)
})

test('of a server that dies while it starts, its last words are shown', async () => {
  const { status, err } = await new Cli().start({ TRY: 'die' })
  expect(status).toBe(1)
  expect(err).toBe('last words\ntorchserve-ts: the server ended during its start (status 3)\n')
})

test('Ctrl-C calls a start off and leaves no process', async () => {
  const cli = new Cli()
  const child = cli.spawn(START, { TRY: 'hang' })
  const end = finished(child)
  await wrote(child, 'hanging')
  const pid = cli.pid!
  child.kill('SIGINT')
  const { status, err } = await end
  expect([status, err]).toEqual([1, 'hanging\ntorchserve-ts: the start was interrupted\n'])
  expect(isServerProcess(pid)).toBe(false)
  expect(readdirSync(join(cli.folder, 'tmp'))).not.toContain('.model_server.pid')
})

test.each([
  ['SIGINT', 0],
  ['SIGTERM', 0],
  // A closed terminal: Restart=on-failure of systemd starts the server again.
  ['SIGHUP', 129],
] as const)('%s ends a foreground server well, with status %d', async (signal, expected) => {
  const cli = new Cli()
  const child = cli.spawn(['--start', '--foreground', '--model-store', 'store'])
  const end = finished(child)
  await wrote(child, 'Model server started.')
  child.kill(signal)
  const { status, out } = await end
  expect(status).toBe(expected)
  expect(out).toContain(`Requests need a token: see key_file.json in ${cli.folder}`)
  expect(existsSync(cli.pidFile)).toBe(false)
})

test('a second signal ends a server that takes its time', async () => {
  const cli = new Cli()
  const child = cli.spawn(['--start', '--foreground', '--model-store', 'store'], {
    TRY: 'never close',
    OPEN_REQUESTS: '2',
  })
  const end = finished(child)
  await wrote(child, 'Model server started.')
  child.kill('SIGINT')
  await wrote(child, 'Stopping when 2 running requests have ended')
  child.kill('SIGINT')
  const { status, out } = await end
  expect(status).toBe(130)
  expect(out).toMatch(/ended, within \d+ s \(drain_timeout\); a second signal stops at once$/m)
  expect(out).toMatch(/Stopped by a second signal, without waiting for running requests \(2\)$/m)
  expect(cli.log).toMatch(/second signal, without waiting for running requests \(2\)$/m)
  expect(out).toContain('killed')
  expect(existsSync(cli.pidFile)).toBe(false)
})

test('a stop kills a server that takes longer than it said', async () => {
  const cli = new Cli()
  const config = 'drain_timeout=0\ncancel_grace_ms=1\n'
  writeFileSync(join(cli.folder, 'config.properties'), config)
  await cli.start({ TRY: 'never close' })
  const pid = cli.pid!
  writeFileSync(cli.claim, `${pid}\n200\n`) // otherwise the test takes as long as the margin
  const { status, err } = await cli.run(['--stop'])
  expect([status, err]).toEqual([1, 'torchserve-ts: did not stop within 0.2 s and was killed\n'])
  expect(existsSync(cli.claim)).toBe(false)
})

test('a defect ends the server with status 1 and a stack in the log', async () => {
  const cli = new Cli()
  const { status, out } = await cli.start({ TRY: 'crash later' }, '--foreground')
  expect(status).toBe(1)
  expect(out).toMatch(
    /\[FATAL\] main torchserve - The server ends because of an internal error\nError: a defect\n {4}at /,
  )
  expect(out).toContain('killed')
  expect(existsSync(cli.pidFile)).toBe(false)
})

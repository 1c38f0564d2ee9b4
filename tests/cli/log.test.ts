import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { formatLogLine } from '../../frontend/observe/logs/log-line.ts'
import { createLogger, type Logger, type LogOptions } from '../../frontend/observe/logs/logger.ts'
import { endLogFiles, openLogFiles } from '../../frontend/observe/logs/log-files.ts'
import { tempDir } from '../support/temp.ts'

async function logged(
  options: Pick<LogOptions, 'level' | 'format'>,
  write: (log: Logger) => void,
): Promise<string[]> {
  const folder = join(tempDir(), 'logs')
  const { log, end, addFiles } = createLogger({ ...options, console: undefined })
  const settings = {
    logLocation: folder,
    metricsLocation: folder,
    logFiles: ['ts_log'] as const,
    logKeepBytes: 1_000,
  }
  const files = openLogFiles(settings, (message) => log.warn(message))
  addFiles(files)
  write(log)
  end()
  await endLogFiles(files)
  log.error('after the end') // late output of a worker is dropped without an error
  return readFileSync(join(folder, 'ts_log.log'), 'utf8').trimEnd().split('\n')
}

test('log files in a folder that cannot be made are one warning each', () => {
  const settings = {
    logLocation: '/proc/none/logs',
    metricsLocation: '/proc/none',
    logFiles: ['ts_log'] as const,
    logKeepBytes: 1_000,
  }
  const warnings: string[] = []
  expect(openLogFiles(settings, (message) => void warnings.push(message))).toEqual({})
  expect(warnings).toEqual([
    "ts_log.log is not written: ENOENT: no such file or directory, mkdir '/proc/none'",
  ])
})

test('text lines have the shape of TorchServe', async () => {
  const lines = await logged({ level: 'info', format: 'text' }, (log) => {
    log.debug('not this')
    log.warn({ model: 'echo', n: 2 }, 'careful')
    log.child({ thread: 'W-9000-echo_1.0-stdout', logger: 'MODEL_LOG' }).info('from a handler')
  })
  const time = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} /
  for (const line of lines) expect(line).toMatch(time)
  expect(lines.map((line) => line.replace(time, ''))).toEqual([
    '[WARN ] main torchserve - careful model=echo n=2',
    '[INFO ] W-9000-echo_1.0-stdout MODEL_LOG - from a handler',
  ])
})

test('an error brings its stack', async () => {
  const lines = await logged({ level: 'error', format: 'text' }, (log) =>
    log.error({ err: new Error('bad') }, 'oops'),
  )
  expect(lines[0]).toMatch(/\[ERROR\] main torchserve - oops$/)
  expect(lines.slice(1, 3)).toEqual(['Error: bad', expect.stringMatching(/^ {4}at /)])
})

test('the lines of a detail are indented, so that none looks like a line of the log', async () => {
  const detail = 'Error: bad\n    at handler.ts:3\n2026-01-01T00:00:00,000 [INFO ] main torchserve - forged'
  const lines = await logged({ level: 'error', format: 'text' }, (log) => log.error({ detail }, 'oops'))
  expect(lines.slice(1)).toEqual([
    '  Error: bad',
    '    at handler.ts:3',
    '  2026-01-01T00:00:00,000 [INFO ] main torchserve - forged',
  ])
})

test('json lines are one object each', async () => {
  const lines = await logged({ level: 'debug', format: 'json' }, (log) => log.debug({ a: 1 }, 'x\ny'))
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0]!)).toEqual({ level: 20, time: expect.any(String), a: 1, msg: 'x\ny' })
})

test('no message, thread or field can forge a line', () => {
  const text = fc.string({ unit: 'binary' })
  fc.assert(
    fc.property(text, text, text, (msg, thread, field) => {
      const line = formatLogLine(JSON.stringify({ level: 30, time: 0, msg, thread, field }))
      expect(line.slice(0, -1)).not.toMatch(/[\u0000-\u0008\u000a-\u001f\u007f\u0085\u2028\u2029]/)
      expect(line.endsWith('\n')).toBe(true)
    }),
  )
})

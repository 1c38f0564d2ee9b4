import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  closeSync,
  createReadStream,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { expect, jest, test } from '@jest/globals'
import { endLogFiles, openLogFiles } from '../../frontend/observe/logs/log-files.ts'
import { LogFile, type LogFileOptions } from '../../frontend/observe/logs/log-file.ts'
import { dayName, KEPT_FILES } from '../../frontend/observe/logs/roll.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

const DAY_MS = 24 * 60 * 60 * 1000

interface Rig {
  folder: string
  path: string
  file: LogFile
  warnings: string[]
}

function open(path: string, options: Partial<LogFileOptions> = {}): Rig {
  const warnings: string[] = []
  const file = new LogFile(path, { warn: (message) => warnings.push(message), ...options })
  return { folder: join(path, '..'), path, file, warnings }
}

const rig = (options: Partial<LogFileOptions> = {}): Rig =>
  open(join(tempDir(), 'logs', 'some_log.log'), options)

function gunzip(path: string): string {
  return gunzipSync(readFileSync(path)).toString()
}

/** Waits until the file system says so; bounded in time. */
async function until(passes: () => boolean): Promise<void> {
  const deadline = performance.now() + 15_000
  while (!passes()) {
    if (performance.now() > deadline) throw new Error('Not within 15 s')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('lines are in the file soon, in their order, and none is missing at the end', async () => {
  const { file, path } = rig()
  file.write('first\n')
  await until(() => readFileSync(path, 'utf8') === 'first\n')
  const lines = Array.from({ length: 10_000 }, (_, n) => `line ${n}\n`)
  for (const line of lines) file.write(line)
  await file.end()
  file.write('after the end\n')
  expect(readFileSync(path, 'utf8')).toBe(`first\n${lines.join('')}`)
})

test('a line after much text at once waits for one pause', async () => {
  const { file, path } = rig()
  const much = `${'x'.repeat(140_000)}\n`
  for (let count = 1; count <= 60; count += 1) {
    file.write(much)
    await until(() => statSync(path).size === count * much.length)
  }
  const pauses = jest.spyOn(globalThis, 'setTimeout')
  file.write('a line\n')
  await until(() => readFileSync(path, 'utf8').endsWith('x\na line\n'))
  const longest = Math.max(...pauses.mock.calls.map(([, ms]) => ms ?? 0))
  pauses.mockRestore()
  expect(longest).toBeLessThanOrEqual(50)
})

test('text of any length and any script stays as it is', async () => {
  const { file, path } = rig()
  const lines = ['ü'.repeat(10_000), '漢字', 'a'.repeat(20_000), '😀'.repeat(3000)].map((text) => `${text}\n`)
  for (const line of lines) file.write(line)
  await file.end()
  expect(readFileSync(path, 'utf8')).toBe(lines.join(''))
})

test('a process that exits writes what waits', () => {
  const { file, path } = rig()
  file.write('last words\n')
  file.endNow()
  expect(readFileSync(path, 'utf8')).toBe('last words\n')
})

test('a full file is put aside under its day, compressed, and numbered', async () => {
  const { file, folder, path } = rig({ maxBytes: 100 })
  for (const letter of ['a', 'b', 'c']) {
    file.write(`${letter.repeat(79)}\n`)
    await until(() => readFileSync(path, 'utf8').startsWith(letter))
  }
  await file.end()
  const day = dayName(Date.now())
  expect(readdirSync(folder).sort()).toEqual([
    `some_log.${day}.2.log.gz`,
    `some_log.${day}.log.gz`,
    'some_log.log',
  ])
  expect(gunzip(join(folder, `some_log.${day}.log.gz`))).toBe(`${'a'.repeat(79)}\n`)
  expect(gunzip(join(folder, `some_log.${day}.2.log.gz`))).toBe(`${'b'.repeat(79)}\n`)
  expect(readFileSync(path, 'utf8')).toBe(`${'c'.repeat(79)}\n`)
})

/** A file that could not be rolled at its limit of 200: the next name for a rolled one is too long. */
async function notRolled(): Promise<{ aside: string; path: string; add: (letter: string) => Promise<void> }> {
  const ending = `.${dayName(Date.now())}.log`
  const stem = join(tempDir(), 'x'.repeat(255 - ending.length))
  const { file, path, warnings } = open(`${stem}.log`, { maxBytes: 200 })
  const add = async (letter: string): Promise<void> => {
    file.write(`${letter.repeat(79)}\n`)
    await until(() => existsSync(path) && readFileSync(path, 'utf8').endsWith(`${letter}\n`))
  }
  const aside = `${stem}${ending}`
  writeFileSync(aside, '')
  for (const letter of ['a', 'b', 'c']) await add(letter)
  expect(warnings).toEqual([expect.stringContaining('ENAMETOOLONG')])
  rmSync(aside)
  return { aside, path, add }
}

/** The letters of its lines. */
const lettersOf = (path: string): string => readFileSync(path, 'utf8').replaceAll(/(.)\1*\n/g, '$1')

test('a file that could not be rolled is rolled when it has grown by the limit again', async () => {
  const { aside, path, add } = await notRolled()
  await add('d')
  expect(existsSync(aside)).toBe(false)
  await add('e')
  expect([lettersOf(aside), lettersOf(path)]).toEqual(['abcd', 'e'])
})

test('a file that could not be rolled and was moved away is rolled at the limit', async () => {
  const { aside, path, add } = await notRolled()
  renameSync(path, join(path, '..', 'moved'))
  for (const letter of ['d', 'e', 'f']) await add(letter)
  expect([lettersOf(aside), lettersOf(path)]).toEqual(['de', 'f'])
})

test('the first line of a new day begins a new file', async () => {
  const path = join(tempDir(), 'some_log.log')
  const before = new Date(Date.now() - 2 * DAY_MS) // a day may have 25 hours
  writeFileSync(path, 'before\n')
  utimesSync(path, before, before)
  const { file, folder } = open(path)
  file.write('today\n')
  await file.end()
  expect(gunzip(join(folder, `some_log.${dayName(before.getTime())}.log.gz`))).toBe('before\n')
  expect(readFileSync(path, 'utf8')).toBe('today\n')
})

test('a file of today is continued', async () => {
  const path = join(tempDir(), 'some_log.log')
  writeFileSync(path, 'before\n')
  const { file, folder } = open(path)
  file.write('after\n')
  await file.end()
  expect(readFileSync(path, 'utf8')).toBe('before\nafter\n')
  expect(readdirSync(folder)).toEqual(['some_log.log'])
})

test('so many rolled files are kept, the newest; those of other logs are left alone', async () => {
  const { file, folder, path } = rig({ maxBytes: 10 })
  const old = Array.from({ length: KEPT_FILES + 3 }, (_, n) => `some_log.01-Jan.${n + 2}.log.gz`)
  old.forEach((name, n) => {
    writeFileSync(join(folder, name), '')
    utimesSync(join(folder, name), n + 1, n + 1)
  })
  writeFileSync(join(folder, 'some_log_2.01-Jan.log.gz'), '')
  file.write('0123456789\n')
  await until(() => readFileSync(path, 'utf8') !== '')
  file.write('next\n')
  await file.end()
  const names = readdirSync(folder)
  expect(names.filter((name) => /^some_log\.\d/.test(name))).toHaveLength(KEPT_FILES)
  expect(names).toContain(old.at(-1))
  expect(names).not.toContain(old[0])
  expect(names).toContain('some_log_2.01-Jan.log.gz')
})

test('rolled files have so many bytes together, before they are compressed too', async () => {
  const { file, folder, path } = rig({ maxBytes: 2_000, keepBytes: 5_000 })
  // Nobody reads it, so that the first file is being compressed all the time.
  const pipe = join(tempDir(), 'pipe')
  execFileSync('mkfifo', [pipe])
  linkSync(pipe, join(folder, `some_log.${dayName(Date.now())}.log.gz.tmp`))
  let most = 0
  for (let n = 0; n < 40; n += 1) {
    file.write(`${n} ${randomBytes(700).toString('hex')}\n`)
    await until(() => readFileSync(path, 'utf8').startsWith(`${n} `))
    const rolled = readdirSync(folder).filter((name) => /^some_log\.\d.*log$/.test(name))
    most = Math.max(most, rolled.length)
  }
  const reader = openSync(pipe, 'r+')
  await file.end()
  closeSync(reader)
  const sizes = readdirSync(folder)
    .filter((name) => name !== 'some_log.log')
    .map((name) => statSync(join(folder, name)).size)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(5_000)
  expect(sizes.length).toBeGreaterThan(1)
  expect(most).toBeLessThanOrEqual(4)
})

test('a file that could not be compressed is compressed with the next one', async () => {
  const { file, folder, path, warnings } = rig({ maxBytes: 100 })
  const day = dayName(Date.now())
  // In its way, as a full disk would be.
  mkdirSync(join(folder, `some_log.${day}.log.gz.tmp`))
  for (const letter of ['a', 'b', 'c']) {
    file.write(`${letter.repeat(79)}\n`)
    await until(() => readFileSync(path, 'utf8').startsWith(letter))
    if (letter === 'b') await until(() => warnings.length > 0)
    if (letter === 'b') rmdirSync(join(folder, `some_log.${day}.log.gz.tmp`))
  }
  await file.end()
  expect(gunzip(join(folder, `some_log.${day}.log.gz`))).toBe(`${'a'.repeat(79)}\n`)
  expect(readdirSync(folder).filter((name) => name.endsWith('.log'))).toEqual(['some_log.log'])
})

test('what an earlier server put aside and did not compress is compressed', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'some_log.05-May.log'), 'old\n')
  writeFileSync(join(folder, 'some_log.05-May.log.gz.tmp'), 'half')
  const { file } = open(join(folder, 'some_log.log'))
  await file.end()
  expect(readdirSync(folder).sort()).toEqual(['some_log.05-May.log.gz', 'some_log.log'])
  expect(gunzip(join(folder, 'some_log.05-May.log.gz'))).toBe('old\n')
})

const PIPE_BYTES = 65_536

const LINE = `${'x'.repeat(99)}\n`

const writtenIn = (text: string): number => text.split(LINE).length - 1

function droppedIn(text: string): number {
  const notes = text.matchAll(/^.*\[WARN \] main torchserve - (\d+) lines dropped: the disk is too slow$/gm)
  return [...notes].reduce((sum, [, count]) => sum + Number(count), 0)
}

test.each([100_000, 400_000])(
  'a disk that stands still holds nobody up and fills no memory; what was dropped is said: %d',
  async (maxWaiting) => {
    const path = join(tempDir(), 'some_log.log')
    execFileSync('mkfifo', [path])
    const pipe = openSync(path, 'r+') // both ends, so that opening waits for nobody
    const { file } = open(path, { maxWaiting })
    const from = performance.now()
    for (let turn = 0; turn < 200; turn += 1) {
      for (let n = 0; n < 100; n += 1) file.write(LINE)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(performance.now() - from).toBeLessThan(5_000)
    let text = ''
    const reader = createReadStream(path, { encoding: 'utf8' })
    reader.on('data', (chunk) => (text += chunk.toString()))
    try {
      // The note may stand before the last lines.
      await until(() => writtenIn(text) + droppedIn(text) === 20_000)
      await file.end()
    } finally {
      closeSync(pipe) // or the reader waits for ever
    }
    await once(reader, 'close')
    // What the pipe has room for, a write that waits for it, and what waits for that.
    expect(writtenIn(text) * LINE.length).toBeLessThanOrEqual(PIPE_BYTES + 2 * maxWaiting)
    expect(writtenIn(text) + droppedIn(text)).toBe(20_000)
  },
)

/** Whether this process has the file open for writing lines. */
const isOpen = (path: string): boolean =>
  readdirSync('/proc/self/fd').filter((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`) === path
    } catch {
      return false // the listing itself
    }
  }).length > 1

test('a stop that is late closes no file under its write, and its lines keep their order', async () => {
  const path = join(tempDir(), 'some_log.log')
  execFileSync('mkfifo', [path])
  const pipe = openSync(path, 'r+')
  const { file } = open(path)
  const much = `${'x'.repeat(3 * PIPE_BYTES)}\n`
  file.write(much) // stands still until somebody reads
  const start = globalThis.setTimeout
  const timers = jest.spyOn(globalThis, 'setTimeout')
  timers.mockImplementation(((action: () => void, ms: number) => start(action, ms < 1_000 ? ms : 1)) as never)
  await endLogFiles({ ts_log: file })
  await new Promise((resolve) => setTimeout(resolve, 1_000)) // what takes a second has happened
  timers.mockRestore()
  const stillOpen = isOpen(path)
  file.write('last\n')
  let text = ''
  const reader = createReadStream(path, { encoding: 'utf8' })
  reader.on('data', (chunk) => (text += chunk.toString()))
  try {
    await until(() => text.endsWith(stillOpen ? 'last\n' : 'x\n'))
  } finally {
    closeSync(pipe)
  }
  await once(reader, 'close')
  expect([stillOpen, text === `${much}last\n`]).toEqual([true, true])
})

const NO_LINES = (text: string): string => text.replaceAll(LINE, '')

test('a full disk stops no file: lines wait, further ones are lost and counted, one line reports them', async () => {
  const path = join(tempDir(), 'some_log.log')
  symlinkSync('/dev/full', path)
  const { file, warnings } = open(path, { maxWaiting: 10 * LINE.length })
  file.write(LINE)
  await until(() => warnings.length > 0)
  for (let n = 0; n < 30; n += 1) file.write(LINE)
  expect([file.lost, warnings]).toEqual([21, [expect.stringContaining('ENOSPC')]])
  rmSync(path) // there is room again
  await until(() => existsSync(path) && readFileSync(path, 'utf8').includes('dropped'))
  file.write(LINE)
  await file.end()
  const text = readFileSync(path, 'utf8')
  expect(writtenIn(text)).toBe(11)
  expect(NO_LINES(text)).toMatch(/^\S+ \[WARN \] main torchserve - 21 lines dropped: ENOSPC.*\n$/)
  expect(file.lost).toBe(21)
})

test.each<[string, (path: string) => void]>([
  ['moved', (path) => renameSync(path, `${path}.1`)],
  [
    'replaced, as logrotate does',
    (path) => {
      renameSync(path, `${path}.1`)
      writeFileSync(path, '')
    },
  ],
  ['deleted', (path) => rmSync(path)],
  ['deleted with its folder', (path) => rmSync(join(path, '..'), { recursive: true })],
  ['truncated', (path) => truncateSync(path)],
])('a file that was %s gets the next line', async (_what, change) => {
  const { file, path } = rig()
  file.write('before\n')
  await until(() => readFileSync(path, 'utf8') === 'before\n')
  change(path)
  file.write('after\n')
  await file.end()
  expect(readFileSync(path, 'utf8')).toBe('after\n')
})

test('a file is opened again when its owner asks, and its compressed predecessor gets nothing more', async () => {
  const { file, path } = rig()
  file.write('before\n')
  await until(() => readFileSync(path, 'utf8') === 'before\n')
  renameSync(path, `${path}.1`)
  file.reopen()
  expect(readFileSync(path, 'utf8')).toBe('')
  file.write('after\n')
  await file.end()
  expect([readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['before\n', 'after\n'])
})

test('what was dropped is said at the exit of the process, too', () => {
  const { file, path } = rig({ maxWaiting: 10 })
  file.write('a line of more characters\n')
  file.endNow()
  expect(droppedIn(readFileSync(path, 'utf8'))).toBe(1)
})

test('a folder that cannot be written is a warning each', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'file'), '')
  const warnings: string[] = []
  const files = openLogFiles(
    {
      logLocation: join(folder, 'file', 'logs'),
      metricsLocation: folder,
      logFiles: ['access_log', 'ts_metrics'],
      logKeepBytes: 1_000,
    },
    (message) => warnings.push(message),
  )
  expect(Object.keys(files)).toEqual(['ts_metrics'])
  expect(warnings).toEqual([expect.stringMatching(/^access_log\.log is not written: ENOTDIR/)])
  await endLogFiles(files)
})

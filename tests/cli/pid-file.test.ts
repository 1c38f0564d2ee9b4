import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import {
  claimPidFile,
  findRunning,
  pidFilePath,
  readRecord,
  removePidFile,
  rewritePidFile,
  tempDirOf,
} from '../../frontend/cli/pid-file.ts'
import { settingsOf } from '../config/support.ts'
import { tempDir } from '../support/temp.ts'

const path = (): string => pidFilePath(tempDir())
const record = { pid: process.pid, stopMs: 5000, folder: '/project', config: '/project/ts.properties' }

test('the file holds this process on its first line, and goes with it', () => {
  const file = join(tempDir(), 'new', '.model_server.pid')
  expect(claimPidFile(file, record)).toBe(true)
  expect(readFileSync(file, 'utf8').split('\n').slice(0, 2)).toEqual([String(process.pid), '5000'])
  expect(readRecord(file)).toEqual({ ...record, stopping: false })
  rewritePidFile(file, { ...record, stopping: true })
  expect(readRecord(file)).toEqual({ ...record, stopping: true })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  removePidFile(file, process.pid)
  expect(readdirSync(join(file, '..'))).toEqual([])
})

test.each(['1', '999999999', '0', '-1', 'x', '', String(process.pid)])(
  'a file that says %j, no server, is taken over',
  (content) => {
    const file = path()
    writeFileSync(file, content)
    expect(claimPidFile(file, record)).toBe(true)
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^${process.pid}\n`))
  },
)

test('a stale file is cleaned when somebody asks', () => {
  const file = path()
  writeFileSync(file, '999999999')
  expect(findRunning(file)).toBeUndefined()
  expect(existsSync(file)).toBe(false)
})

test('the file of another process is left alone', () => {
  const file = path()
  writeFileSync(file, '1')
  removePidFile(file, process.pid)
  rewritePidFile(file, record)
  expect(readFileSync(file, 'utf8')).toBe('1')
})

test('a link in its place counts as no file, and is replaced', () => {
  const [file, elsewhere] = [path(), path()]
  claimPidFile(elsewhere, record)
  symlinkSync(elsewhere, file)
  expect(readRecord(file)).toBeUndefined()
  expect(claimPidFile(file, record)).toBe(true)
  expect(lstatSync(file).isFile()).toBe(true)
  expect(readRecord(elsewhere)).toMatchObject(record)
})

test('a folder in its place is no server, stays, and is told to whoever wants to start', () => {
  const file = path()
  mkdirSync(file)
  expect(findRunning(file)).toBeUndefined()
  expect(() => claimPidFile(file, record)).toThrow(`${file} must be a file of this user. Remove it`)
  expect(readdirSync(join(file, '..'))).toEqual(['.model_server.pid'])
})

test('the folder is the one that the settings say', () => {
  for (const env of [{}, { TEMP: '/scratch' }, { TEMP: 'relative' }, { TEMP: ' ' }]) {
    expect(tempDirOf(env)).toBe(settingsOf({ env: env as Record<string, string> }).settings.tempDir)
  }
})

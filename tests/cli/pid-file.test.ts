import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import {
  claimPidFile,
  findRunning,
  pidFilePath,
  removePidFile,
  tempDirOf,
} from '../../frontend/cli/pid-file.ts'
import { settingsOf } from '../config/support.ts'
import { tempDir } from '../support/temp.ts'

const path = (): string => pidFilePath(tempDir())

test('the file holds this process on its first line, and goes with it', () => {
  const file = join(tempDir(), 'new', '.model_server.pid')
  const release = claimPidFile(file, 5000)
  expect(readFileSync(file, 'utf8').split('\n')).toEqual([String(process.pid), '5000', ''])
  release()
  expect(readdirSync(join(file, '..'))).toEqual([])
})

test.each(['1', '999999999', '0', '-1', 'x', '', String(process.pid)])(
  'a file that says %j, no server, is taken over',
  (content) => {
    const file = path()
    writeFileSync(file, content)
    const release = claimPidFile(file, 1)
    expect(readFileSync(file, 'utf8')).toMatch(new RegExp(`^${process.pid}\n`))
    release()
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
  expect(existsSync(file)).toBe(true)
})

test('the folder is the one that the settings say', () => {
  for (const env of [{}, { TEMP: '/scratch' }, { TEMP: 'relative' }, { TEMP: ' ' }]) {
    expect(tempDirOf(env)).toBe(settingsOf({ env: env as Record<string, string> }).settings.tempDir)
  }
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { spawnSync } from '../support/tools.ts'

const UNIT = readFileSync(join(REPOSITORY, 'deploy', 'systemd', 'torchserve-ts.service'), 'utf8')

/** What systemd-analyze finds wrong in a unit; undefined where there is no systemd-analyze. */
function mistakes(unit: string): string | undefined {
  const path = join(tempDir(), 'torchserve-ts.service')
  writeFileSync(path, unit)
  const { status, stderr } = spawnSync('systemd-analyze', ['verify', '--recursive-errors=no', path], {
    encoding: 'utf8',
  })
  return status === null ? undefined : `${status} ${stderr}`.trim()
}

const verified = mistakes(UNIT) === undefined ? test.skip : test

verified('systemd-analyze finds nothing wrong in the unit, and finds a mistake', () => {
  expect(mistakes(UNIT)).toBe('0')
  expect(mistakes(UNIT.replace('KillMode=', 'KilMode='))).toContain('KilMode')
})

test('systemd hears systemd-notify, and gives a stop longer than the server may take', () => {
  const value = (key: string): string | undefined => new RegExp(`^${key}=(.*)$`, 'm').exec(UNIT)?.[1]
  expect(['Type', 'NotifyAccess', 'KillMode'].map(value)).toEqual(['notify', 'all', 'mixed'])
  expect(Number(value('TimeoutStopSec'))).toBeGreaterThan(50)
})

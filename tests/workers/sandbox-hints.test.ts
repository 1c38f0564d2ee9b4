import { describe, expect, test } from '@jest/globals'
import type { SandboxSettings } from '../../frontend/models/sandbox-settings.ts'
import { SandboxHints } from '../../frontend/workers/sandbox/hints.ts'

const SUPPORT = {
  perl: '/usr/bin/perl',
  landlock: 7,
  seccomp: true,
  userNamespaces: true,
  missing: undefined,
}
const SETTINGS = { mode: 'default', network: true } as SandboxSettings

/** Hints whose time this test moves. */
function rig(settings: Partial<SandboxSettings> = {}, landlock = SUPPORT.landlock) {
  const clock = { now: 1_000_000 }
  const sandbox = { ...SETTINGS, ...settings }
  const support = { ...SUPPORT, landlock }
  return { clock, hints: new SandboxHints(sandbox, support, ['MY_KEY', 'lower', '_'], () => clock.now) }
}

describe('a hint that the sandbox may be the cause', () => {
  test.each([
    "EACCES: permission denied, open '/data'",
    'connect EPERM 127.0.0.1:9',
    "PermissionError: [Errno 13] Permission denied: '/data'",
    'PermissionError: [Errno 1] Operation not permitted',
    "KeyError: 'MY_KEY'",
  ])('follows: %s', (text) => {
    expect(rig().hints.forLoad(text)).toContain('sandbox=default')
    expect(rig().hints.forRequest(text)).toContain('sandbox=default')
    expect(rig({ mode: 'off' }).hints.forLoad(text)).toBeUndefined()
  })

  test.each([
    "EACCES: permission denied, open '/data/model.gguf'",
    "PermissionError: [Errno 13] Permission denied: '/data/model.gguf'",
  ])('names the key with the path: %s', (text) => {
    expect(rig().hints.forLoad(text)).toContain(
      'sandbox_read=/data/model.gguf (to write: sandbox_write=/data/model.gguf)',
    )
  })

  test.each(['TypeError: x is not a function', 'MY_KEYS', 'lower', 'PERMISSION', 'getaddrinfo EAI_AGAIN h'])(
    'does not follow: %s',
    (text) => {
      expect(rig().hints.forLoad(text)).toBeUndefined()
    },
  )

  test('follows a failed look-up of a host only without network', () => {
    expect(rig({ network: false }).hints.forLoad('getaddrinfo EAI_AGAIN h')).toContain('without network')
  })

  test('is not given for files where the system does not confine them, but for variables', () => {
    const { hints } = rig({}, 0)
    expect(hints.forLoad('EACCES')).toBeUndefined()
    expect(hints.forLoad('MY_KEY is not set')).toContain('MY_KEY')
  })

  test('comes once a minute for requests, and for every load', () => {
    const { hints, clock } = rig()
    const given = (): boolean => hints.forRequest('EACCES') !== undefined
    expect([given(), given()]).toEqual([true, false])
    clock.now += 59_999
    expect(given()).toBe(false)
    clock.now += 1
    expect([given(), given()]).toEqual([true, false])
    expect([hints.forLoad('EACCES'), hints.forLoad('EACCES')]).not.toContain(undefined)
  })

  test('joins a failed request with what the worker printed, in either order, within 5 s', () => {
    const output = 'PermissionError: [Errno 13] Permission denied'
    const before = rig()
    expect(before.hints.forOutput(output)).toBeUndefined()
    before.clock.now += 5000
    expect(before.hints.forRequest('Prediction failed')).toContain('Hint: ')
    expect(before.hints.forOutput(output)).toBeUndefined()

    const after = rig()
    expect(after.hints.forRequest('Prediction failed')).toBeUndefined()
    after.clock.now += 5000
    expect(after.hints.forOutput(output)).toContain('Hint: ')
    expect(after.hints.forRequest('Prediction failed')).toBeUndefined()

    const apart = rig()
    apart.hints.forOutput(output)
    apart.clock.now += 5001
    expect(apart.hints.forRequest('Prediction failed')).toBeUndefined()
    apart.clock.now += 5001
    expect(apart.hints.forOutput(output)).toBeUndefined()
  })
})

import { describe, expect, jest, test } from '@jest/globals'
import { CutWarnings } from '../../../frontend/edge/admission/cut-warnings.ts'

const CLIENT = { remoteAddress: '10.0.0.1', remotePort: 50_000 }

function rig() {
  const lines: string[] = []
  return { lines, cuts: new CutWarnings((line) => lines.push(line)) }
}

describe('the log says why connections are closed', () => {
  test.each([
    ['10.0.0.1:50000', CLIENT],
    ['[fe80::1]:50000', { ...CLIENT, remoteAddress: 'fe80::1' }],
    ['a client on a Unix socket', { remoteAddress: undefined, remotePort: undefined }],
  ])('and of whom: %s', (name, client) => {
    const { cuts, lines } = rig()
    cuts.tell('unread', client)
    expect(lines).toEqual([
      expect.stringMatching(/^The connection of .* was closed: too many bytes of answers .*; raise it if /),
    ])
    expect(lines[0]).toContain(`of ${name} was`)
  })

  test('with one line each second for each limit; each line has the number of those before it', () => {
    jest.useFakeTimers()
    const { cuts, lines } = rig()
    for (let i = 0; i < 1_000; i += 1) cuts.tell('pipelining', CLIENT)
    cuts.tell('unexplained', CLIENT)
    expect(lines).toHaveLength(2)
    jest.advanceTimersByTime(999)
    cuts.tell('pipelining', CLIENT)
    expect(lines).toHaveLength(2)
    jest.advanceTimersByTime(1)
    cuts.tell('pipelining', CLIENT)
    cuts.tell('unexplained', CLIENT)
    expect(lines.map((line) => /\(and (\d+) more before it\)/.exec(line)?.[1])).toEqual([
      undefined,
      undefined,
      '1000',
      undefined,
    ])
    jest.useRealTimers()
  })

  test('and those that no line has told of are told after ten seconds, and when the server stops', () => {
    jest.useFakeTimers()
    const { cuts, lines } = rig()
    for (let i = 0; i < 4; i += 1) cuts.tell('unexplained', CLIENT)
    jest.advanceTimersByTime(9_999)
    expect(lines).toHaveLength(1)
    jest.advanceTimersByTime(1)
    expect(lines[1]).toMatch(/^More connections \(3\) were closed: more bytes came that belong to no request/)
    // That line counts as one of the second.
    cuts.tell('unexplained', CLIENT)
    expect(lines).toHaveLength(2)
    cuts.close()
    expect(lines[2]).toMatch(/^More connections \(1\) were closed: /)
    cuts.close()
    jest.advanceTimersByTime(60_000)
    expect(lines).toHaveLength(3)
    jest.useRealTimers()
  })
})

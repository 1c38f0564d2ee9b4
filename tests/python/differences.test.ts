import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import {
  DIFFERENCES,
  packDifferences,
  readDifferences,
  recordDifferences,
  seeDifferences,
} from '../support/python/differences.ts'
import { NO_ANSWER, Peer, type Seen } from '../support/python/peer.ts'
import { describePython } from '../support/python/test-python.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

interface Row {
  readonly key: string
  readonly cells: readonly string[]
}

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'torchserve-compatibility.md'), 'utf8')
const ROWS = rowsOf(PAGE)
const RECORDED = readDifferences()

describe('the page of differences', () => {
  const differing = ROWS.filter(({ key }) => !key.startsWith('Not supported: '))

  test('has a recording of TorchServe, or a test, for each row, and for nothing else', () => {
    const held = Object.entries(DIFFERENCES).flatMap(([heading, rows]) =>
      Object.keys(rows).map((row) => `${heading}: ${row}`),
    )
    expect(held.sort()).toEqual(differing.map(({ key }) => key).sort())
    const tests = Object.values(DIFFERENCES)
      .flatMap(Object.values)
      .filter((held) => typeof held === 'string')
    expect(tests.filter((path) => !existsSync(join(REPOSITORY, `${path}.test.ts`)))).toEqual([])
  })

  test.each(differing.filter(({ key }) => key in RECORDED))(
    '$key: says what was recorded',
    ({ key, cells }) => {
      const { torchserve, here } = RECORDED[key]!
      expect(torchserve).not.toEqual(here)
      // The table of parameters has no column for TorchServe, because it ignores them all.
      const [theirs, ours] = cells.length === 2 ? [undefined, cells[1]!] : [cells[1]!, cells[2]!]
      if (theirs !== undefined) expectClaims(theirs, torchserve)
      expectClaims(ours, here)
    },
  )
})

/** The statuses that a cell names are in the recording, and what it says is not answered is not. */
function expectClaims(cell: string, seen: Seen): void {
  const text = JSON.stringify(seen)
  for (const [status] of cell.matchAll(/(?<![-,\w])[2-5]\d\d\b/g))
    expect([cell, text]).toEqual([cell, expect.stringContaining(status)])
  if (/hangs|no response|without a response|waits forever|wait, without a limit/.test(cell))
    expect(text).toContain(NO_ANSWER)
}

await describePython('this server', (python) => {
  let seen: ReadonlyMap<string, Seen>

  beforeAll(async () => {
    const [modelStore, other] = [tempDir(), tempDir()]
    await packDifferences(python, modelStore, other)
    const config = { python: python.python, default_workers_per_model: 1, disable_system_metrics: true }
    const server = await startServer({ modelStore, config })
    seen = await seeDifferences(new Peer(server.ports))
    recordDifferences('here', seen)
  }, 300_000)

  test.each(Object.keys(RECORDED))('%s: is as recorded', (key) => {
    const { torchserve, here } = RECORDED[key]!
    expect(seen.get(key)).toEqual(key.startsWith('Coverage: ') ? torchserve : here)
  })
})

/** The rows of all tables, with their heading. */
function rowsOf(page: string): Row[] {
  let heading = ''
  const rows: Row[] = []
  const lines = page.split('\n')
  lines.forEach((line, i) => {
    if (line.startsWith('## ')) heading = line.slice(3)
    if (!line.startsWith('| ') || lines[i + 1]?.startsWith('|---') === true) return
    const cells = line.slice(2, -2).split(/ \| /)
    rows.push({ key: `${heading}: ${cells[0]!}`, cells })
  })
  return rows
}

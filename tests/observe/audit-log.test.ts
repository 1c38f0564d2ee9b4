import { expect, test } from '@jest/globals'
import { AuditLog, droppedAuditLine, type AuditEntry } from '../../frontend/observe/logs/audit-log.ts'

function rig() {
  const lines: string[] = []
  const audit = new AuditLog({ write: (line) => void lines.push(line) })
  const entries = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>)
  return { audit, lines, entries }
}

const REFUSED: AuditEntry = { event: 'authentication', operation: 'GET /models', outcome: 'refused' }

test('a line is one JSON object, whatever a client has put into it', () => {
  const { audit, lines, entries } = rig()
  const model = 'a\nb\r\u2028\u0085\u007f\u001b[31m"}{'
  audit.write({ event: 'management', operation: 'register model', outcome: 'failed', model })
  expect(lines).toHaveLength(1)
  expect(lines[0]).toMatch(/^[\x20-\x7e]+\n$/)
  expect(entries()[0]).toMatchObject({ event: 'management', model })
})

test('no line has a secret of an address, and none is endless', () => {
  const { audit, lines } = rig()
  const url = 'https://user:hunter2@store.example/m.mar?X-Amz-Signature=abcdef'
  audit.write({ event: 'management', operation: 'register model', outcome: 'done', url })
  audit.write({ ...REFUSED, operation: `POST /models?url=${encodeURIComponent(url)}` })
  audit.write({ event: 'management', operation: 'scale model', outcome: 'failed', model: 'm'.repeat(9e6) })
  const text = lines.join('')
  expect(text).not.toMatch(/hunter2|abcdef/)
  expect(text).toContain('https://***@store.example/m.mar?X-Amz-Signature=***')
  expect(text.length).toBeLessThan(4_000)
})

test.each([
  ['tokens', 'authentication'],
  ['limits', 'limit'],
] as const)('refused %s cannot fill the disk: most are counted, in one line', (_what, event) => {
  const { audit, entries } = rig()
  for (let i = 0; i < 100_000; i++) audit.write({ ...REFUSED, event })
  const written = entries().length
  expect(written).toBeGreaterThanOrEqual(20)
  expect(written).toBeLessThan(60)
  audit.write({ event: 'management', operation: 'scale model', outcome: 'done' })
  expect(entries().at(-1)).toMatchObject({ operation: 'scale model' })
  audit.close()
  const counts = entries().filter(({ operation }) => operation === 'left out')
  const leftOut = counts.reduce((sum, { detail }) => sum + Number.parseInt(detail as string, 10), 0)
  const shown = entries().filter(({ operation }) => operation === REFUSED.operation).length
  expect(shown + leftOut).toBe(100_000)
})

test('the line for lines that a slow disk has lost is JSON too', () => {
  expect(JSON.parse(droppedAuditLine(7, 'the disk is too slow'))).toMatchObject({
    detail: '7 lines dropped: the disk is too slow',
  })
})

import { expect } from '@jest/globals'
import type { Asked } from '../contract/dialect.ts'

export * from './port-dialects.ts'

/** A status and a reason instead of an answer. */
export function expectRefused({ items, end }: Asked, status: string, message = ''): void {
  expect(items).toEqual([])
  expect(end).toMatchObject({ kind: 'refused', message: expect.stringContaining(message) as unknown })
  expect((end as { status: string }).status).toBe(status)
}

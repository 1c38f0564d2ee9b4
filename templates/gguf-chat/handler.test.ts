import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withSystem } from './handler.ts'

const user = { role: 'user', content: 'Hello' } as const

test('a chat without a system message gets one', () => {
  assert.deepEqual(
    withSystem([user]).map(({ role }) => role),
    ['system', 'user'],
  )
})

test('a chat with a system message stays as it is', () => {
  const own = { role: 'system', content: 'Be kind' } as const
  assert.deepEqual(withSystem([own, user]), [own, user])
})

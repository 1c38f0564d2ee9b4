import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runHandler } from 'torchserve-ts/testing'
import { handle } from './handler.ts'

test('streams the words one by one', async () => {
  const { responses } = await runHandler(handle, ['one two three'])
  assert.deepEqual(responses[0]!.items, ['one\n', 'two\n', 'three\n'])
})

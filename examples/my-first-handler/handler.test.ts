import assert from 'node:assert/strict'
import { test } from 'node:test'
import { runHandler } from 'torchserve-ts/testing'
import Words from './handler.ts'

test('says the words one by one', async () => {
  const { responses } = await runHandler(Words, ['one two three'])
  assert.deepEqual(responses[0]!.items, ['one\n', 'two\n', 'three\n'])
})

import { expect, test } from '@jest/globals'
import { runHandler } from 'torchserve-ts/testing'
import Words from '../../examples/my-first-handler/handler.ts'

test('says the words one by one', async () => {
  const { responses } = await runHandler(Words, ['one two three'])
  expect(responses[0]!.items).toEqual(['one\n', 'two\n', 'three\n'])
})

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { Handler } from '../../backend-worker/handler.ts'
import { runHandler, type RunResult } from '../../backend-worker/testing.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const DOCUMENT = readFileSync(join(REPOSITORY, 'docs', 'batching.md'), 'utf8')
const HANDLERS = [...DOCUMENT.matchAll(/^```ts\n(.*?)^```/gms)].map((match) => match[1]!)

/** The n-th handler of the document. */
async function handler(n: number): Promise<Handler> {
  const path = join(tempDir(), 'handler.ts')
  writeFileSync(path, HANDLERS[n]!)
  return { ...((await import(path)) as Handler) }
}

const texts = ({ responses }: RunResult) => responses.map(({ items }) => items)

test('the handler for batches fails requests one by one', async () => {
  const { responses } = await runHandler(await handler(0), ['abc', 1])
  expect(responses[0]!.items).toEqual(['ABC'])
  expect(responses[1]!.error).toMatchObject({ code: 'HANDLER_REJECTED', status: 400 })
})

test('the handler for continuous batching counts down in steps', async () => {
  const result = await runHandler(await handler(1), ['3', '1'], { continuousBatching: true })
  expect(texts(result)).toEqual([['2\n', '1\n', '0\n'], ['0\n']])
  expect(result.logs.map(({ message }) => message)).toEqual(['request-1 has left', 'request-0 has left'])
})

test('the handler for sequences adds up', async () => {
  const request = (id: string, body: string) => ({ parts: { body }, headers: { ts_request_sequence_id: id } })
  const result = await runHandler(await handler(2), [request('a', '3'), request('b', '0')])
  expect(texts(result)).toEqual([['3'], ['0']])
  expect(result.responses.map(({ headers }) => headers)).toEqual([{}, { ts_request_sequence_end: 'b' }])
})

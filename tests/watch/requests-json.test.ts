import { expect, test } from '@jest/globals'
import { RequestsJson } from '../../frontend/watch/moment.ts'
import { testJob } from '../support/jobs.ts'

test('who wants no requests gets none, also after others have got some', () => {
  const json = new RequestsJson([testJob('a').job, testJob('b').job], performance.now())
  const ids = (limit: number): string[] => {
    const requests = JSON.parse(`[${json.first(limit).toString()}]`) as { id: string }[]
    return requests.map(({ id }) => id)
  }
  expect([ids(1), ids(0), ids(2), ids(0), ids(1)]).toEqual([['a'], [], ['a', 'b'], [], ['a']])
})

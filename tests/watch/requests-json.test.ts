import { expect, test } from '@jest/globals'
import { Moment } from '../../frontend/watch/moment.ts'
import { testJob } from '../support/jobs.ts'

test('who wants no requests gets none, also after others have got some', () => {
  const jobs = [testJob('a').job, testJob('b').job]
  const models = { overviews: () => [], failedOverviews: () => [], loading: () => [] }
  const moment = new Moment({ overview: () => ({}) as never, models, jobs })
  const ids = (limit: number): string[] => {
    const [, data] = moment.requests(limit).toString().split('data: ')
    const { requests } = JSON.parse(data!) as { requests: { id: string }[] }
    return requests.map(({ id }) => id)
  }
  expect([ids(1), ids(0), ids(2), ids(0), ids(1)]).toEqual([['a'], [], ['a', 'b'], [], ['a']])
})

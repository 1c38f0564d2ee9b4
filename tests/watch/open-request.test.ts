import { expect, test } from '@jest/globals'
import { openRequest } from '../../frontend/watch/open-request.ts'
import { testJob } from '../support/jobs.ts'

test.each([
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['192.0.2.7', '192.0.2.7'],
  ['2001:db8::7', '2001:db8::7'],
])('the client %s is shown as %s', (address, shown) => {
  const { job } = testJob('r', { sender: { address, keyName: 'mobile', identity: 'api key mobile' } })
  expect(openRequest(job, performance.now())).toMatchObject({ client: shown, key: 'mobile' })
})

import { expect, test } from '@jest/globals'
import { redactUrl } from '../../common/redact.ts'

test.each([
  'X-Amz-Signature',
  'X-Amz-Credential',
  'X-Amz-Security-Token',
  'AWSAccessKeyId',
  'X-Goog-Signature',
  'GoogleAccessId',
  'sig',
  'Signature',
  'Key-Pair-Id',
  'Policy',
  'password',
  'pwd',
  'api_key',
  'jwt',
  'session',
  'code',
])('the value of %s is not shown, wherever it stands in the query', (name) => {
  for (const sign of ['?', '?a=1&', '?a=1;', '#'])
    expect(redactUrl(`https://host/x.mar${sign}${name}=planted`)).toBe(`https://host/x.mar${sign}${name}=***`)
})

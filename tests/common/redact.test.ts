import { expect, test } from '@jest/globals'
import { redactSecrets, redactUrl } from '../../common/texts.ts'

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
  for (const sign of ['?', '?a=1&', '?a=1;'])
    expect(redactUrl(`https://host/x.mar${sign}${name}=planted`)).toBe(`https://host/x.mar${sign}${name}=***`)
})

test.each([
  ['https://host/x.mar#planted', 'https://host/x.mar#***'],
  ['https://host/x.mar?a=1#token=planted', 'https://host/x.mar?a=1#***'],
  [
    'POST /models?url=https%3A%2F%2Fhost%2Fx.mar%23planted HTTP/1.1',
    'POST /models?url=https%3A%2F%2Fhost%2Fx.mar%23*** HTTP/1.1',
  ],
  ['Model #1 of https://host/x.mar', 'Model #1 of https://host/x.mar'],
])('the fragment of an address is not shown: %s', (text, shown) => {
  expect(redactSecrets(text)).toBe(shown)
})

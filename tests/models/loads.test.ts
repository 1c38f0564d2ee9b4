import { expect, test } from '@jest/globals'
import { Load } from '../../frontend/models/located-model.ts'

test('an archive on its way is described with its progress and without its secrets', () => {
  const load = new Load({ url: 'https://me:secret@store.example/a.mar?X-Amz-Signature=secret' })
  load.receivedBytes = 10
  load.totalBytes = 40
  expect(load.describe()).toMatchObject({ phase: 'downloading', receivedBytes: 10, totalBytes: 40 })
  expect(JSON.stringify(load.describe())).not.toContain('secret')
  expect(new Load({ url: 'a.mar' }).describe()).toMatchObject({ phase: 'unpacking' })
})

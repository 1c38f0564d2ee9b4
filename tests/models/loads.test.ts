import { expect, test } from '@jest/globals'
import { Loads } from '../../frontend/models/loads.ts'

test('an archive on its way is listed with its progress and without its secrets, until it ends', () => {
  const loads = new Loads()
  const load = loads.begin({ url: 'https://me:secret@store.example/a.mar?X-Amz-Signature=secret' })
  load.received(10, 40)
  expect(loads.list()).toMatchObject([{ phase: 'downloading', receivedBytes: 10, totalBytes: 40 }])
  expect(JSON.stringify(loads.list())).not.toContain('secret')
  load.unpacking()
  expect(loads.list()).toMatchObject([{ phase: 'unpacking' }])
  load.end()
  expect(loads.list()).toEqual([])
})

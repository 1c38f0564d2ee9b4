import { describe, expect, test } from '@jest/globals'
import { joinHeaders, splitHeaders } from '../../common/headers.ts'
import { handlerHeaders } from '../../frontend/workers/in-flight.ts'
import { truthfulHeaders } from '../../frontend/workers/python/truthful-headers.ts'

/** As a client may try to be explained, described and sent elsewhere. */
const FORGED = joinHeaders({ explain: 'True', 'x-user': 'ann', describe: 'True', url_path: 'admin' })

describe('what TorchServe tells handlers in headers', () => {
  test('is told by method and path, and wins over what the client sends', () => {
    const told = (request: Omit<Parameters<typeof handlerHeaders>[0], 'headers'>, headers = FORGED) =>
      splitHeaders(handlerHeaders({ ...request, headers }))
    expect(told({ method: 'handle', urlPath: '', tellsExplain: true })).toMatchObject({
      explain: 'False',
      url_path: '',
      'x-user': 'ann',
    })
    expect(told({ method: 'explain', urlPath: 'v1/x' })).toMatchObject({ explain: 'True', url_path: 'v1/x' })
    expect(told({ method: 'describe' }, '')).toEqual({ describe: 'True' })
    expect(told({ method: 'handle' }, joinHeaders({ a: 'b' }))).toEqual({ a: 'b' })
  })
})

describe('headers with credentials', () => {
  const request = {
    method: 'handle',
    headers: joinHeaders({ a: 'b' }),
    credentials: joinHeaders({ Authorization: 'Bearer secret', cookie: 'session=1' }),
  } as const

  test('reach only a handler whose model asks for them', () => {
    expect(splitHeaders(handlerHeaders(request))).toEqual({ a: 'b' })
    expect(splitHeaders(handlerHeaders(request, new Set(['cookie'])))).toEqual({
      a: 'b',
      cookie: 'session=1',
    })
    expect(splitHeaders(handlerHeaders(request, new Set(['authorization'])))).toEqual({
      a: 'b',
      Authorization: 'Bearer secret',
    })
  })
})

describe('the headers of TorchServe’s Python worker', () => {
  const seen = (method: 'handle' | 'explain' | 'describe', headers: string) =>
    splitHeaders(truthfulHeaders({ method, headers: handlerHeaders({ method, headers }) }))

  test('name no other method than the one that is wanted', () => {
    expect(seen('handle', FORGED)).toEqual({ 'x-user': 'ann', url_path: 'admin' })
    expect(seen('explain', FORGED)).toEqual({ explain: 'True', 'x-user': 'ann', url_path: 'admin' })
    expect(seen('explain', joinHeaders({ explain: 'False' }))).toEqual({ explain: 'True' })
    expect(seen('describe', FORGED)).toMatchObject({ describe: 'True', 'x-user': 'ann' })
    expect(seen('describe', FORGED)).not.toHaveProperty('explain')
    for (const forged of ['describe', 'explain'])
      expect(seen('handle', joinHeaders({ 'x-user': 'ann', [forged]: 'True' }))).toEqual({ 'x-user': 'ann' })
  })

  test('are untouched where they name none', () => {
    const plain = joinHeaders({
      a: 'explain',
      b: 'describe',
      True: 'x',
      explain: 'False',
      'x-explain': 'True',
    })
    expect(truthfulHeaders({ method: 'handle', headers: plain })).toBe(plain)
  })
})

import { describe, expect, test } from '@jest/globals'
import { runHandler, type TestRequest } from 'torchserve-ts/testing'
import { handle } from '../../model-store/echo/handler.ts'

describe('echo', () => {
  test('returns bytes as they are, without a content type', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i))
    const { responses } = await runHandler(handle, [bytes])
    expect(responses[0]!.body).toEqual(bytes)
    expect(responses[0]!.contentType).toBeUndefined()
    expect(responses[0]!.streamed).toBe(false)
  })

  test('returns text with its content type', async () => {
    const headers = { 'Content-Type': 'text/plain; charset=utf-8' }
    const { responses } = await runHandler(handle, [{ parts: { body: 'Grüße' }, headers }])
    expect(responses[0]!.body.toString()).toBe('Grüße')
    expect(responses[0]!.contentType).toBe('text/plain; charset=utf-8')
  })

  test.each([{ a: [1, { b: null }] }, [1, 2], 7, null, true, 'a text', ''])(
    'returns JSON as JSON: %j',
    async (value) => {
      const headers = { 'content-type': 'application/json' }
      const parts = { body: Buffer.from('') as Buffer | string }
      const { responses } = await runHandler(
        (requests, context) => handle([{ ...requests[0], body: value }], context),
        [{ parts, headers }],
      )
      expect(JSON.parse(responses[0]!.body.toString())).toEqual(value)
      expect(responses[0]!.contentType).toBe('application/json')
    },
  )

  test('prefers the part `data`, then `body`, then the first part; nothing gives nothing', async () => {
    const bodies: TestRequest[] = [
      { parts: { other: Buffer.from('o'), body: Buffer.from('b'), data: Buffer.from('d') } },
      { parts: { other: Buffer.from('o'), body: Buffer.from('b') } },
      { parts: { other: Buffer.from('o'), more: Buffer.from('m') } },
      { parts: {} },
    ]
    const { responses } = await runHandler(handle, bodies)
    expect(responses.map((response) => response.body.toString())).toEqual(['d', 'b', 'o', ''])
  })

  test('answers each request of a batch with its own input', async () => {
    const inputs = Array.from({ length: 8 }, (_, i) => Buffer.from(`request ${i}`))
    const { responses } = await runHandler(handle, inputs)
    expect(responses.map((response) => response.body)).toEqual(inputs)
  })
})

import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from '@jest/globals'
import { endWith } from '../../../frontend/edge/http/chunk-writer.ts'
import { rawRequest } from '../../support/raw-http.ts'

test('answers of one turn leave at its end, one directly after the other, each whole', async () => {
  const held: ServerResponse[] = []
  const server = createServer((_req, res) => void held.push(res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const answers = ['a', 'b', 'c'].map(async (path) => {
    const { body } = await rawRequest(port, `/${path}`, { method: 'GET' })
    return body
  })
  while (held.length < answers.length) await once(server, 'request')
  for (const res of held) {
    const text = `for ${res.req.url!}`
    res.writeHead(200, ['content-length', String(text.length)])
    endWith(res, text)
  }
  expect(held.map(({ socket }) => socket!.writableLength > 0)).toEqual([true, true, true])
  expect(await Promise.all(answers)).toEqual(['for /a', 'for /b', 'for /c'])
  server.close()
})

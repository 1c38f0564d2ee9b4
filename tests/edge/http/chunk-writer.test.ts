import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, test } from '@jest/globals'
import { ChunkWriter, endWith } from '../../../frontend/edge/http/chunk-writer.ts'
import { MESSAGES } from '../../../frontend/edge/http/server.ts'

/** What a client of one connection gets for these requests, the last of which closes it. */
async function received(
  answer: (path: string, res: ServerResponse) => void,
  paths: string[],
): Promise<string> {
  const server = createServer(MESSAGES, (req, res) => answer(req.url!, res)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  let text = ''
  socket.on('data', (data: Buffer) => (text += data.toString('latin1')))
  const heads = paths.map((path, index) => {
    const close = index === paths.length - 1 ? 'Connection: close\r\n' : ''
    return `GET ${path} HTTP/1.1\r\nHost: a\r\n${close}\r\n`
  })
  socket.write(heads.join(''))
  await once(socket, 'close')
  server.close()
  return text
}

test('an answer that waits behind another one has its bytes as they are', async () => {
  let endFirst: (() => void) | undefined
  const text = await received(
    (path, res) => {
      if (path === '/first') {
        endFirst = () => res.end('first')
        return
      }
      res.writeHead(200, ['content-length', '1'])
      endWith(res, '\xfc')
      endFirst!()
    },
    ['/first', '/second'],
  )
  expect(text.endsWith('\r\n\r\n\xfc')).toBe(true)
})

test.each([1, 1_016, 1_017, 1_024, 1_025, 1_040, 2_000])(
  'an item of %i bytes is one chunk with its frame, given as a text or as bytes',
  async (size) => {
    const text = await received(
      (_path, res) => {
        res.writeHead(200)
        const writer = new ChunkWriter(res, () => undefined, { before: 'data: ', after: '\n\n' })
        writer.writeText('x'.repeat(size))
        writer.write(Buffer.alloc(size, 'y'), 0, size)
        writer.end()
      },
      ['/'],
    )
    const chunk = (item: string): string => `${(size + 8).toString(16)}\r\ndata: ${item.repeat(size)}\n\n\r\n`
    expect(text.slice(text.indexOf('\r\n\r\n') + 4)).toBe(`${chunk('x')}${chunk('y')}0\r\n\r\n`)
  },
)

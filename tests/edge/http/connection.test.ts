import { once } from 'node:events'
import { expect, test } from '@jest/globals'
import { Connection, type LiveReply } from '../../../frontend/edge/http/connection.ts'
import { socketPair } from '../../support/socket-pair.ts'

function reply(name: string, told: string[]): LiveReply {
  return { nextOnSocket: undefined, clientLeft: () => told.push(name) }
}

test.each([
  ['the newest', 'c', ['b', 'a']],
  ['one in the middle', 'b', ['c', 'a']],
  ['the oldest', 'a', ['c', 'b']],
])(
  'a client that leaves is told to all replies but the one that ended: %s',
  async (_which, ended, others) => {
    const [near, far] = await socketPair()
    const connection = new Connection(near)
    const told: string[] = []
    const replies = new Map(['a', 'b', 'c'].map((name) => [name, reply(name, told)]))
    for (const each of replies.values()) connection.add(each)
    connection.remove(replies.get(ended)!)
    far.destroy()
    near.resume()
    await once(near, 'close')
    expect(told).toEqual(others)
  },
)

test('a reply that was removed before is no trouble', async () => {
  const [near] = await socketPair()
  const connection = new Connection(near)
  const told: string[] = []
  const [kept, gone] = [reply('kept', told), reply('gone', told)]
  connection.add(kept)
  connection.remove(gone)
  expect(connection.answering).toBe(true)
  connection.remove(kept)
  expect(connection.answering).toBe(false)
})

test('a client that has closed its side gets no further reply, though its socket is still open', async () => {
  const [near, far] = await socketPair()
  const connection = new Connection(near)
  near.resume()
  far.end()
  await once(near, 'end')
  expect(near.destroyed).toBe(false)
  expect(connection.add(reply('late', []))).toBe(false)
})

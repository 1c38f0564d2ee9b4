import { once } from 'node:events'
import { expect, test } from '@jest/globals'
import { Connection, type LiveReply } from '../../../frontend/edge/http/connection.ts'
import { socketPair } from '../../support/socket-pair.ts'

function reply(name: string, told: string[]): LiveReply {
  return { clientLeft: () => told.push(name) }
}

test('a client that leaves is told to the reply that is under way', async () => {
  const [near, far] = await socketPair()
  const connection = new Connection(near)
  const told: string[] = []
  const [over, live] = [reply('over', told), reply('live', told)]
  connection.add(over)
  connection.remove(over)
  connection.add(live)
  far.destroy()
  near.resume()
  await once(near, 'close')
  expect(told).toEqual(['live'])
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

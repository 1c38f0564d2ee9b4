import { EventEmitter } from 'node:events'
import type { Http2Session } from 'node:http2'
import { setImmediate } from 'node:timers/promises'
import { beforeEach, expect, test } from '@jest/globals'
import { Connection } from '../../../frontend/edge/grpc/connection.ts'
import { testAdmission } from '../../support/admission.ts'
import { TimeLimit } from '../../../frontend/jobs/time-limit.ts'

/** A session that can only be ended. */
class Session extends EventEmitter {
  readonly socket = {}
  destroyed = false
  destroy(): void {
    this.destroyed = true
  }
}

function open(): { session: Session; connection: Connection } {
  const session = new Session()
  const idle = new TimeLimit(1_000, 'REQUEST_TIMEOUT', 'it was idle', 'a key')
  return { session, connection: new Connection(session as unknown as Http2Session, idle, testAdmission()) }
}

// A turn of its own for each test.
beforeEach(() => setImmediate())

test('of refused calls in one turn, 500 are answered; the connections of further ones are closed', async () => {
  const opened = Array.from({ length: 12 }, open)
  for (const { connection } of opened) for (let n = 0; n < 50; n += 1) connection.countRefusal()
  expect(opened.map(({ session }) => session.destroyed)).toEqual([...Array(10).fill(false), true, true])
  await setImmediate()
  const [next] = [open()]
  for (let n = 0; n < 99; n += 1) next.connection.countRefusal()
  expect(next.session.destroyed).toBe(false)
  next.connection.countRefusal()
  expect(next.session.destroyed).toBe(true)
})

test('a connection with a right token is closed by neither limit', () => {
  const { session, connection } = open()
  connection.accepted = true
  for (let n = 0; n < 600; n += 1) connection.countRefusal()
  const may = Array.from({ length: 100 }, () => connection.mayCallPublicly())
  expect([session.destroyed, may.every(Boolean)]).toEqual([false, true])
})

test('without one, it may make sixteen calls in a turn that ask for no token', async () => {
  const { connection } = open()
  const may = (): boolean[] => Array.from({ length: 18 }, () => connection.mayCallPublicly())
  const sixteen = [...Array(16).fill(true), false, false]
  expect(may()).toEqual(sixteen)
  await setImmediate()
  expect(may()).toEqual(sixteen)
})

import { EventEmitter } from 'node:events'
import type { Http2Server, Http2Session } from 'node:http2'
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { Connection, ConnectionGate } from '../../../frontend/edge/grpc/connection.ts'
import { testAdmission } from '../../support/admission.ts'
import { FAREWELL_MS, FIRST_CALL_MS } from '../../../frontend/edge/grpc/limits.ts'
import { TimeLimit } from '../../../frontend/jobs/time-limit.ts'

class FakeSocket extends EventEmitter {
  readonly remoteAddress: string
  readonly remotePort: number
  state = 'open'

  constructor(remoteAddress: string, remotePort: number) {
    super()
    this.remoteAddress = remoteAddress
    this.remotePort = remotePort
  }

  destroy(): void {
    this.state = 'closed'
    this.emit('close')
  }

  resetAndDestroy(): void {
    this.state = 'reset'
  }
}

/** A gate, and its connections. */
function listener(): {
  gate: ConnectionGate
  connect: (address: string) => FakeSocket
  /** The connection speaks HTTP/2. The function says how often it was told to go. */
  greet: (socket: FakeSocket) => () => number
} {
  const gate = new ConnectionGate(undefined, testAdmission().cuts)
  const server = new EventEmitter()
  gate.guard(server as unknown as Http2Server)
  let port = 1
  const connect = (address: string): FakeSocket => {
    const socket = new FakeSocket(address, port++)
    server.emit('connection', socket)
    return socket
  }
  const greet = (socket: FakeSocket): (() => number) => {
    let closed = 0
    server.emit('session', Object.assign(new EventEmitter(), { socket, close: () => (closed += 1) }))
    return () => closed
  }
  return { gate, connect, greet }
}

describe('the time for the first call', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  test('is over: a client that speaks HTTP/2 is told to go, so that no call of it fails', () => {
    const { connect, greet } = listener()
    const socket = connect('192.0.2.1')
    const goodbyes = greet(socket)
    jest.advanceTimersByTime(FIRST_CALL_MS)
    expect([goodbyes(), socket.state]).toEqual([1, 'open'])
    jest.advanceTimersByTime(1_000)
    expect([goodbyes(), socket.state]).toEqual([1, 'closed'])
  })

  test('ends a connection without any; one with a call stays, and its neighbour does not profit', () => {
    const { gate, connect } = listener()
    const silent = connect('192.0.2.1')
    const calling = connect('192.0.2.1')
    jest.advanceTimersByTime(FIRST_CALL_MS - 1)
    gate.called({ socket: calling } as unknown as Http2Session)
    expect(silent.state).toBe('open')
    jest.advanceTimersByTime(1)
    expect([silent.state, calling.state]).toEqual(['closed', 'open'])
    jest.advanceTimersByTime(10 * FIRST_CALL_MS)
    expect([calling.state, gate.count]).toEqual(['open', 1])
  })
})

describe('a connection that is told to go', () => {
  beforeEach(() => {
    jest.useFakeTimers()
  })
  afterEach(() => {
    jest.useRealTimers()
  })

  function idle(): { connection: Connection; told: string[] } {
    const told: string[] = []
    const session = Object.assign(new EventEmitter(), {
      socket: new FakeSocket('192.0.2.1', 1),
      closed: false,
      destroyed: false,
      close: () => told.push('close'),
      destroy: () => told.push('destroy'),
    })
    const limit = new TimeLimit(100, 'REQUEST_TIMEOUT', 'idle', '')
    const connection = new Connection(session as unknown as Http2Session, limit, testAdmission())
    connection.callOpened(0)
    connection.callClosed()
    jest.advanceTimersByTime(100)
    return { connection, told }
  }

  test('has only its farewell to read what it has not read', () => {
    const { told } = idle()
    expect(told).toEqual(['close'])
    jest.advanceTimersByTime(FAREWELL_MS)
    expect(told).toEqual(['close', 'destroy'])
  })

  test('keeps a call that came at the same time', () => {
    const { connection, told } = idle()
    connection.callOpened(0)
    jest.advanceTimersByTime(10 * FAREWELL_MS)
    expect(told).toEqual(['close'])
    connection.callClosed()
    jest.advanceTimersByTime(100 + FAREWELL_MS)
    expect(told).toEqual(['close', 'close', 'destroy'])
  })
})

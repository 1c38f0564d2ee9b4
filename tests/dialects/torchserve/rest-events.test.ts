import { expect, test } from '@jest/globals'
import { ServeError } from '../../../common/errors.ts'
import { ANYBODY, type Principal } from '../../../frontend/auth/principal.ts'
import { createManagementApp } from '../../../frontend/dialects/rest-apps.ts'
import type { EventOutlet, EventQuery } from '../../../frontend/watch/viewers.ts'
import { ask, type Rig, startRig, Wire } from '../../support/http/rig.ts'

/** More than a connection takes that nobody reads. */
const TOO_MUCH = 32 * 1024 * 1024

interface Opened {
  query: EventQuery
  outlet: EventOutlet
}

/** The route; `opened` plays the events of a viewer. */
function serving(opened: (viewer: Opened) => void): Promise<Rig> {
  const watch = (_principal: Principal, query: EventQuery, outlet: EventOutlet): (() => void) => {
    opened({ query, outlet })
    return () => undefined
  }
  return startRig((deps) => createManagementApp({ ...deps, events: { watch } }), {
    authorizer: { check: () => ANYBODY, rotate: () => Promise.resolve() },
  })
}

/** What a viewer asks for with this query, or the answer that refuses it. */
async function asked(query: string): Promise<unknown[]> {
  const queries: unknown[] = []
  const rig = await serving(({ query: { topics, requests }, outlet }) => {
    queries.push([[...topics], requests])
    outlet.send(Buffer.from(': there\n\n'))
    outlet.end()
  })
  const { status, text } = await ask(rig, `/events${query}`)
  return status === 200 ? queries : [status, text]
}

/** A viewer that has connected, and what it receives. */
async function connected(...headers: string[]): Promise<{ wire: Wire; outlet: EventOutlet }> {
  let found!: (outlet: EventOutlet) => void
  const outlet = new Promise<EventOutlet>((resolve) => (found = resolve))
  const rig = await serving((viewer) => found(viewer.outlet))
  const wire = new Wire(Number(new URL(rig.listener.address).port))
  wire.request('GET', '/events', '', ...headers)
  return { wire, outlet: await outlet }
}

test('who asks for nothing in particular gets all topics and 200 requests', async () => {
  expect(await asked('')).toEqual([[['overview', 'requests', 'log'], 200]])
  expect(await asked('?topics=log,overview&requests=5000')).toEqual([[['log', 'overview'], 5000]])
  expect(await asked('?requests=0')).toEqual([[['overview', 'requests', 'log'], 0]])
})

test('a misspelt parameter is refused', async () => {
  expect(await asked('?topic=log')).toEqual([400, expect.stringContaining('did you mean topics?')])
})

test('a connection that does not read is full', async () => {
  const { wire, outlet } = await connected()
  wire.socket.pause()
  expect(outlet.isFull).toBe(false)
  outlet.send(Buffer.alloc(TOO_MUCH, ' '))
  expect(outlet.isFull).toBe(true)
})

test.each([
  ['end() ends the stream', (outlet: EventOutlet) => outlet.end(), true],
  [
    'cut() breaks it off, so that the viewer can tell',
    (outlet: EventOutlet) => outlet.cut(new ServeError('INTERNAL', 'Internal server error')),
    false,
  ],
])('%s', async (_what, leave, isComplete) => {
  const { wire, outlet } = await connected('Connection: close')
  outlet.send(Buffer.from('event: overview\ndata: {}\n\n'))
  leave(outlet)
  const text = await wire.rest()
  expect(text).toContain('event: overview\n')
  expect(text.endsWith('\r\n0\r\n\r\n')).toBe(isComplete)
})

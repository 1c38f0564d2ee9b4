import { ECHO_BODY, ITEMS, STREAM_ITEMS } from '../ceilings/workload.ts'
import type { Case, Protocol } from '../measures/cases.ts'
import { callAndRead, postAndRead, type Answer } from '../wire.ts'
import { timedText, type Model, type Peer } from './peer.ts'

export const PEER_CASES = ['REST unary', 'REST stream', 'gRPC unary', 'gRPC stream'] as const
export type PeerCase = (typeof PEER_CASES)[number]

export const protocolOf = (name: PeerCase): Protocol => (name.startsWith('REST') ? 'rest' : 'grpc')
export const isStream = (name: PeerCase): boolean => name.endsWith('stream')

/** One peer's form of a case; undefined: it has no such protocol. */
export function caseOf(name: PeerCase, peer: Peer): Case | undefined {
  const model: Model = isStream(name) ? 'hundred' : 'echo'
  const text = isStream(name) ? timedText({ n: ITEMS, gap: 0 }) : ECHO_BODY
  const items = isStream(name) ? ITEMS : 0
  const isRight = isStream(name) ? hasAllItems : hasEcho
  if (protocolOf(name) === 'rest') {
    const { path, headers, body } = peer.rest(model, text)
    return {
      ...{ name, items, protocol: 'rest' },
      load: (target) => ({ url: target.restOrigin! + path, headers, body }),
      ask: (target) => postAndRead(target.restOrigin! + path, body, headers),
      isRight: (answer) => answer.status === 200 && isRight(answer),
    }
  }
  if (peer.grpc === undefined) return undefined
  const call = peer.grpc(model, text)
  return {
    ...{ name, items, protocol: 'grpc' },
    load: (target) => ({ url: target.grpcOrigin! + call.path, body: call.message }),
    ask: (target) => callAndRead(target.grpcOrigin!, call),
    isRight: (answer) => answer.status === 0 && isRight(answer),
  }
}

function hasEcho({ body }: Answer): boolean {
  return body.includes(ECHO_BODY)
}

/** Every item, whole and in order, whatever the peer wraps it in. Its newline may be escaped. */
function hasAllItems({ body }: Answer): boolean {
  let at = 0
  for (const item of STREAM_ITEMS) {
    const found = body.indexOf(item.slice(0, -1), at)
    if (found < 0) return false
    at = found + item.length
  }
  return true
}

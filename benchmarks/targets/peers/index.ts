import type { Peer } from '../../peers/peer.ts'
import { fastify } from './fastify.ts'
import { litserve } from './litserve.ts'
import { mlserver } from './mlserver.ts'
import { torchserve } from './torchserve.ts'
import { triton, tritonBatching } from './triton.ts'

export { ours } from './ours.ts'

/** In the order of the output. */
export const PEERS: readonly Peer[] = [torchserve, mlserver, litserve, triton, tritonBatching, fastify]

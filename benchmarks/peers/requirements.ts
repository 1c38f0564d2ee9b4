import type { PeerCase } from './cases.ts'
import { percent, type PeerReport } from './report.ts'

/** One requirement on torchserve-ts beside its peers. */
export interface Verdict {
  what: string
  required: string
  value?: string
  /** undefined: the peer was not measured. */
  ok?: boolean
}

const RATIOS: readonly { case: PeerCase; against: string; atLeast: number }[] = [
  { case: 'REST unary', against: 'TorchServe', atLeast: 12 },
  { case: 'REST unary', against: 'Triton', atLeast: 4 },
  { case: 'REST unary', against: 'Triton, batching', atLeast: 4 },
  { case: 'REST stream', against: 'TorchServe', atLeast: 20 },
  { case: 'REST stream', against: 'Fastify, piscina', atLeast: 10 },
  { case: 'gRPC unary', against: 'TorchServe', atLeast: 8 },
  { case: 'gRPC stream', against: 'TorchServe', atLeast: 15 },
]
const ADDED_BELOW_MS = 1
const BATCH_RATIO = 0.95
/** Share of requests in full batches, where clients can fill one. */
const IN_FULL_BATCHES = 0.95

export function verdicts(report: PeerReport): Verdict[] {
  return [...ratios(report), ...times(report), ...idle(report), ...batches(report)]
}

function ratios({ throughput }: PeerReport): Verdict[] {
  return RATIOS.map(({ case: name, against, atLeast }) => {
    const row = throughput.find((each) => each.case === name && each.target === against)
    const value = row?.ratio?.median
    return {
      what: `${name}, times ${against}`,
      required: `>= ${atLeast}`,
      value: value?.toFixed(1),
      ok: value === undefined ? undefined : value >= atLeast,
    }
  })
}

function times({ times: [ours] }: PeerReport): Verdict[] {
  if (ours === undefined) return []
  const value = ours.added.median
  return [
    {
      what: 'Time to the first chunk beyond the handler, one client',
      required: `< ${ADDED_BELOW_MS} ms`,
      value: `${value.toFixed(2)} ms`,
      ok: value < ADDED_BELOW_MS,
    },
  ]
}

function idle({ idle: [ours, ...peers] }: PeerReport): Verdict[] {
  if (ours === undefined) return []
  return peers.map((peer) => ({
    what: `Memory per idle stream, below ${peer.target}`,
    required: `< ${peer.kilobytes.toFixed(1)} KB`,
    value: `${ours.kilobytes.toFixed(1)} KB`,
    ok: ours.kilobytes < peer.kilobytes,
  }))
}

/** The least of all cases. */
function batches({ batches: rows }: PeerReport): Verdict[] {
  if (rows.length === 0) return []
  const ratio = Math.min(...rows.map((row) => row.ratio.median))
  const fillable = rows.filter(({ clients, batchSize }) => clients >= batchSize)
  const full = Math.min(...fillable.map(({ oursFull }) => oursFull))
  return [
    {
      what: 'Batches, times TorchServe, the least',
      required: `>= ${BATCH_RATIO}`,
      value: ratio.toFixed(2),
      ok: ratio >= BATCH_RATIO,
    },
    {
      what: 'Requests in full batches, the least',
      required: `>= ${percent(IN_FULL_BATCHES)}`,
      value: percent(full),
      ok: full >= IN_FULL_BATCHES,
    },
  ]
}

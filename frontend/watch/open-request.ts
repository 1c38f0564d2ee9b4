import type { OpenRequest } from '../../common/server-events.ts'
import type { Job } from '../jobs/job.ts'

/** What an open job is doing. `now`: a performance.now(). */
export function openRequest(job: Job, now: number): OpenRequest {
  const { request, firstResponseAt, createdAt, lastGap } = job
  const { sender } = request
  return {
    id: request.requestId,
    modelName: request.modelName,
    modelVersion: job.version,
    dialect: request.dialect ?? 'server',
    client: sender === undefined ? 'server' : plainAddress(sender.address),
    key: sender?.keyName,
    ageMs: Math.round(now - createdAt),
    streaming: job.streaming,
    items: job.items,
    bytes: job.bytes,
    firstResponseMs: firstResponseAt === undefined ? undefined : rounded(firstResponseAt - createdAt),
    lastGapMs: lastGap === undefined ? undefined : rounded(lastGap),
    waitsFor: waitsFor(job),
  }
}

function waitsFor({ startedAt, isHeldBack }: Job): OpenRequest['waitsFor'] {
  if (startedAt === undefined) return 'worker'
  return isHeldBack ? 'client' : 'handler'
}

/** A listener for IPv6 names clients of IPv4 `::ffff:192.0.2.1`. */
function plainAddress(address: string): string {
  return address.startsWith('::ffff:') ? address.slice(7) : address
}

/** Microseconds are enough. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

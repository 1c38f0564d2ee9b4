import { unmapped } from '../../common/addresses.ts'
import type { OpenRequest } from '../../common/server-events.ts'
import type { Job } from '../jobs/job.ts'

/** Open jobs in the order in which watchers see them. */
export function oldestFirst(jobs: Iterable<Job>): Job[] {
  return [...jobs].sort((a, b) => a.createdAt - b.createdAt)
}

/** What an open job is doing. `now`: a performance.now(). */
export function openRequest(job: Job, now: number): OpenRequest {
  const { request, firstResponseAt, createdAt, lastGap } = job
  const { sender } = request
  return {
    id: request.requestId,
    modelName: request.modelName,
    modelVersion: job.version,
    api: request.dialect ?? 'server',
    client: sender === undefined ? 'server' : unmapped(sender.address),
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

/** Microseconds are enough. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000
}

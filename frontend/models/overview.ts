import type { Histogram, LoadingModel, ModelOverview, WorkerOverview } from '../../common/server-events.ts'
import type { Distribution } from '../observe/metrics/distribution.ts'
import type { Model } from './model.ts'
import type { WorkerDescription } from './operations.ts'

/** What a version does now, for those who watch the server. */
export function overviewOf(model: Model, isDefault: boolean): ModelOverview {
  const { queue, metrics, open } = model
  const { stream, unary } = metrics.tally.kinds
  const { streams, items, bytes } = model.progress()
  const { failure } = model.workers
  return {
    modelName: model.name,
    modelVersion: model.version,
    isDefault,
    state: stateOf(model),
    failure: failure && { id: failure.id, at: failure.at.toISOString(), reason: failure.reason },
    runtime: model.prepared.runtime,
    minWorkers: model.minWorkers,
    maxWorkers: model.maxWorkers,
    workers: model.workers.describe().map(workerOverview),
    queue: { waiting: queue.pending, room: queue.remainingCapacity },
    open,
    streams,
    methods: model.methods,
    failedInARow: metrics.tally.failedInARow,
    errors: [...metrics.tally.errors.values()].map((each) => ({ ...each })),
    trafficShare: model.traffic?.share,
    counts: {
      unary: { ...unary.endings },
      stream: { ...stream.endings },
      items: metrics.tally.items + items,
      bytes: metrics.tally.bytes + bytes,
    },
    times: {
      firstResponse: histogram(stream.firstResponse.plus(unary.firstResponse)),
      gaps: histogram(metrics.tally.gaps),
      queue: histogram(stream.queue.plus(unary.queue)),
      whole: histogram(stream.whole.plus(unary.whole)),
    },
  }
}

/** Whether no worker has loaded it yet, and one does. */
export function isStarting({ methods, workers, workflowNode }: Model): boolean {
  const waits = methods === undefined && workers.wanted > 0 && workers.failure === undefined
  return waits && workflowNode?.kind !== 'functions'
}

export function startingOverview({ name, url, registeredAt }: Model): LoadingModel {
  return { modelName: name, url, phase: 'starting workers', ageMs: Date.now() - registeredAt }
}

function stateOf({ workers, wakes }: Model): ModelOverview['state'] {
  if (workers.failure !== undefined) return 'failed'
  if (workers.ready > 0) return 'ready'
  if (workers.wanted > 0) return 'loading'
  return wakes ? 'waking' : 'stopped'
}

function workerOverview(worker: WorkerDescription): WorkerOverview {
  const { id, pid, state, memoryUsage, inFlight, restarts, lastExit } = worker
  const runs = pid > 0
  return {
    id,
    pid: runs ? pid : undefined,
    state,
    memoryBytes: runs ? memoryUsage : undefined,
    inFlight,
    restarts,
    lastExit: lastExit && { at: lastExit.at, cause: lastExit.reason, lines: lastExit.stderr },
  }
}

function histogram({ bounds, counts, sum }: Distribution): Histogram {
  return { bounds, counts: [...counts], sum }
}

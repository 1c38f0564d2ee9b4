import type { WatchedServer } from '../../frontend/watch/moment.ts'

/** A server without models, requests and a log. */
export function nothingToWatch(): WatchedServer {
  return {
    overview: () => ({
      version: '0.0.0',
      node: process.version,
      pid: 1,
      startedAt: '2026-01-01T00:00:00.000Z',
      draining: false,
      memoryBytes: 0,
      cpuSeconds: 0,
      listening: [],
    }),
    models: { overviews: () => [], failedOverviews: () => [], loading: () => [] },
    jobs: [],
  }
}

import type { Settings } from './options.ts'

/**
 * Everything that `npm run bench` requires of throughput: least ratios to the target that a contender is
 * compared with. docs/internals/performance.md promises them.
 */

/** Least ratio of a case by its name, with this number of clients. */
export type Requirement = (caseName: string, clients: number) => number

/** With one client, of every ceiling and with every setting. */
const ONE_CLIENT = 0.75

/** With more clients: of the worker ceiling (REST), and of the grpc-js ceiling (gRPC). */
const CASES = new Map<string, Readonly<Record<Settings, number>>>([
  ['REST unary', { default: 0.55, 'side-by-side': 0.7 }],
  ['REST stream', { default: 0.75, 'side-by-side': 0.75 }],
  ['gRPC unary', { default: 0.6, 'side-by-side': 0.8 }],
  ['gRPC stream', { default: 1.5, 'side-by-side': 1.5 }],
])

/** What torchserve-ts with these settings must reach of its ceiling. */
export function ofCeiling(settings: Settings): Requirement {
  return (caseName, clients) => (clients === 1 ? ONE_CLIENT : CASES.get(caseName)![settings])
}

/** The worker ceiling against node:http: a ceiling that is slow itself would promise nothing. */
export const WORKER_CEILING: Requirement = () => 0.4

/** Python archives against TorchServe with the same ones. */
export const TORCHSERVE: Requirement = () => 1

/** A server that traces a tenth of its requests, against one that traces none. */
export const TRACED_TENTH: Requirement = () => 0.75

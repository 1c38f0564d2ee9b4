import { ServeError } from '../common/errors.ts'

/** `node` is ours; the others mean TorchServe's Python or C++ worker. */
export const RUNTIMES = ['node', 'python', 'python3', 'LSP'] as const
export type Runtime = (typeof RUNTIMES)[number]

/** @throws ServeError INVALID_ARGUMENT with TorchServe's message */
export function checkRuntime(text: string): Runtime {
  const runtime = RUNTIMES.find((known) => known === text)
  if (runtime === undefined) throw new ServeError('INVALID_ARGUMENT', `Invalid RuntimeType value: ${text}`)
  return runtime
}

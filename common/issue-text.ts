/** The part of a zod issue that its text needs. */
interface Issue {
  readonly path: readonly PropertyKey[]
  readonly message: string
  readonly code?: string
  readonly keys?: readonly string[]
}

/**
 * One sentence on the first of zod's issues: `ts_metrics.gauge[0].name must be a string`, or
 * `colour is not supported` for an unknown key.
 * @param issues those of a failed parse; their messages begin with a verb
 * @param root name of the value itself
 */
export function issueText([issue]: readonly Issue[], root: string): string {
  const { path, message, code, keys } = issue!
  if (code === 'unrecognized_keys') return `${placeOf([...path, ...keys!.slice(0, 1)])} is not supported`
  return `${placeOf(path) || root} ${message}`
}

function placeOf(path: readonly PropertyKey[]): string {
  const steps = path.map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
  return steps.join('').replace(/^\./, '')
}

import { createRequire } from 'node:module'
import type * as Zod from 'zod/mini'
import { isCredentialHeader } from '../../common/headers.ts'
import { ServeError } from '../../common/errors.ts'
import { issueText, isObject } from '../../common/json.ts'

/** Weights between the versions of one model (docs/canary.md): what a client sets, and a snapshot keeps. */
export interface TrafficSettings {
  /** Relative weights by version, whole numbers from 0 to 1,000,000; at least one is above 0. */
  readonly weights: Readonly<Record<string, number>>
  readonly sticky?: StickySettings | undefined
}

/** Requests with the same value go to the same version: that of a header, or the name of the caller. */
export type StickySettings = { readonly header: string } | { readonly caller: true }

/** Largest weight: 0.0001 % can be expressed beside it. */
const MAX_WEIGHT = 1_000_000
const WEIGHT = `must be a whole number from 0 to ${MAX_WEIGHT}`
const STICKY = 'must be {"header": "NAME"} or {"caller": true}'
const EXAMPLE = '{"weights": {"1.0": 90, "2.0": 10}}'

/**
 * The weights in the body of a call. Keys that are not known are refused.
 * @throws ServeError INVALID_ARGUMENT with the place and what it must be
 */
export function parseTraffic(body: unknown): TrafficSettings {
  const z = createRequire(import.meta.url)('zod/mini') as typeof Zod
  const result = z.strictObject(trafficShape(z), `must be JSON such as ${EXAMPLE}`).safeParse(body)
  if (!result.success) throw new ServeError('INVALID_ARGUMENT', issueText(result.error.issues, 'The body'))
  const { weights } = result.data
  // A record leaves out the one key that it could not hold.
  if (isObject(body) && isObject(body['weights']) && Object.hasOwn(body['weights'], '__proto__'))
    throw new ServeError('INVALID_ARGUMENT', 'weights.__proto__ is not supported')
  if (!Object.values(weights).some((weight) => weight > 0))
    throw new ServeError('INVALID_ARGUMENT', `weights must have a weight above 0, such as ${EXAMPLE}`)
  return result.data
}

/** The keys of {@link TrafficSettings}. */
export function trafficShape(z: typeof Zod) {
  const weight = z.int(WEIGHT).check(z.minimum(0, WEIGHT), z.maximum(MAX_WEIGHT, WEIGHT))
  const header = z.string('must be the name of a header').check(
    z.regex(/^[\w!#$%&'*+.^`|~-]{1,200}$/, 'must be the name of a header'),
    z.refine((name) => !isCredentialHeader(name), {
      error: 'must not be a header with credentials: use {"caller": true}',
    }),
  )
  return {
    weights: z.record(z.string(), weight, `must be an object such as {"1.0": 90, "2.0": 10}`),
    sticky: z.optional(
      z.union([z.strictObject({ header }), z.strictObject({ caller: z.literal(true) })], STICKY),
    ),
  }
}

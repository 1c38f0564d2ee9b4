import { diag, type SpanContext, TraceFlags } from '@opentelemetry/api'
import { TraceId } from './span-ids.ts'
import type { Environment } from './start.ts'

const PARENT_BASED = 'parentbased_'
const DEFAULT = 'parentbased_always_on'
const KNOWN = 'always_on, always_off, traceidratio, each also after parentbased_'

/**
 * Decides which requests are recorded, as the SDK's samplers do: it would only ask those for spans of its
 * own, and most requests are to have none.
 */
export class Sampler {
  /** Traces that begin here are recorded if `foldOf` their ids is less. */
  readonly rootBound: number
  readonly #isParentBased: boolean

  constructor(ratio: number, isParentBased: boolean) {
    this.rootBound = ratio === 1 ? 2 ** 32 : Math.floor(ratio * 0xffffffff)
    this.#isParentBased = isParentBased
  }

  /** About a request whose client has this span. */
  samples({ traceId, traceFlags }: SpanContext): boolean {
    if (this.#isParentBased) return (traceFlags & TraceFlags.SAMPLED) !== 0
    return TraceId.of(traceId).fold < this.rootBound
  }
}

/**
 * What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function samplerOf(env: Environment): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || DEFAULT
  const isParentBased = name.startsWith(PARENT_BASED)
  const ratio = rootRatio(isParentBased ? name.slice(PARENT_BASED.length) : name, env)
  if (ratio !== undefined) return new Sampler(ratio, isParentBased)
  diag.error(`unknown OTEL_TRACES_SAMPLER value "${name}", using ${DEFAULT}; known: ${KNOWN}`)
  return new Sampler(1, true)
}

function rootRatio(name: string, env: Environment): number | undefined {
  if (name === 'always_on') return 1
  if (name === 'always_off') return 0
  return name === 'traceidratio' ? ratioOf(env) : undefined
}

function ratioOf(env: Environment): number {
  const text = env['OTEL_TRACES_SAMPLER_ARG']?.trim() ?? ''
  const ratio = Number(text)
  if (text !== '' && ratio >= 0 && ratio <= 1) return ratio
  diag.error(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, and is "${text}": all are sampled`)
  return 1
}

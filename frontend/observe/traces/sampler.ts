import { diag } from '@opentelemetry/api'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import type { Environment } from './start.ts'

const PARENT_BASED = 'parentbased_'
const DEFAULT = 'parentbased_always_on'

/** Who decides which requests are recorded. */
export interface Samplers {
  /** About requests that come with a context. */
  readonly sdk: Sampler
  /**
   * About traces that begin here, as the SDK's sampler would: those whose fold (TraceId) is less than this.
   * The SDK reads all digits of the id, twice.
   */
  readonly rootBound: number
}

/**
 * What OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name. The SDK makes its sampler of them too, but then
 * only a span could ask it, and most requests are to have none.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function samplersOf(env: Environment): Samplers {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || DEFAULT
  const isParentBased = name.startsWith(PARENT_BASED)
  const ratio = rootRatio(isParentBased ? name.slice(PARENT_BASED.length) : name, env)
  if (ratio === undefined) diag.error(`unknown OTEL_TRACES_SAMPLER value "${name}", using ${DEFAULT}`)
  const root = ofRatio(ratio ?? 1)
  const sdk = isParentBased || ratio === undefined ? new ParentBasedSampler({ root }) : root
  return { sdk, rootBound: boundOf(ratio ?? 1) }
}

function rootRatio(name: string, env: Environment): number | undefined {
  if (name === 'always_on') return 1
  if (name === 'always_off') return 0
  return name === 'traceidratio' ? ratioOf(env) : undefined
}

function ofRatio(ratio: number): Sampler {
  if (ratio === 1) return new AlwaysOnSampler()
  return ratio === 0 ? new AlwaysOffSampler() : new TraceIdRatioBasedSampler(ratio)
}

function boundOf(ratio: number): number {
  return ratio === 1 ? 2 ** 32 : Math.floor(ratio * 0xffffffff)
}

function ratioOf(env: Environment): number {
  const text = env['OTEL_TRACES_SAMPLER_ARG']?.trim() ?? ''
  const ratio = Number(text)
  if (text !== '' && ratio >= 0 && ratio <= 1) return ratio
  diag.error(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, and is "${text}": all are sampled`)
  return 1
}

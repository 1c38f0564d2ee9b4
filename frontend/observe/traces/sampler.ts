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

/**
 * The SDK's sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name. The SDK makes it of them too,
 * but then only a span could ask it, and most requests are to have none.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function samplerOf(env: Environment): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || DEFAULT
  const isParentBased = name.startsWith(PARENT_BASED)
  const root = rootSampler(isParentBased ? name.slice(PARENT_BASED.length) : name, env)
  if (root === undefined) {
    diag.error(`unknown OTEL_TRACES_SAMPLER value "${name}", using ${DEFAULT}`)
    return new ParentBasedSampler({ root: new AlwaysOnSampler() })
  }
  return isParentBased ? new ParentBasedSampler({ root }) : root
}

function rootSampler(name: string, env: Environment): Sampler | undefined {
  if (name === 'always_on') return new AlwaysOnSampler()
  if (name === 'always_off') return new AlwaysOffSampler()
  return name === 'traceidratio' ? new TraceIdRatioBasedSampler(ratioOf(env)) : undefined
}

function ratioOf(env: Environment): number {
  const text = env['OTEL_TRACES_SAMPLER_ARG']?.trim() ?? ''
  const ratio = Number(text)
  if (text !== '' && ratio >= 0 && ratio <= 1) return ratio
  diag.error(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, and is "${text}": all are sampled`)
  return 1
}

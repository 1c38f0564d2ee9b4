/** What the standard variables say of sampling, contexts and limits, as the SDK takes it. */
import { diag, type TextMapPropagator } from '@opentelemetry/api'
import { CompositePropagator, W3CBaggagePropagator, W3CTraceContextPropagator } from '@opentelemetry/core'
import { B3InjectEncoding, B3Propagator } from '@opentelemetry/propagator-b3'
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  type SpanLimits,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace'
import { splitList } from '../../../common/names.ts'
import { ownValue } from '../../../common/json.ts'
import type { Environment } from './start.ts'
import { numberFrom, positive } from './variables.ts'

const PARENT_BASED = 'parentbased_'
const DEFAULT_SAMPLER = 'parentbased_always_on'
const SAMPLERS = 'always_on, always_off, traceidratio, each also after parentbased_'

/** All that the specification still has. */
const PROPAGATORS = new Map<string, () => TextMapPropagator>([
  ['tracecontext', () => new W3CTraceContextPropagator()],
  ['baggage', () => new W3CBaggagePropagator()],
  ['b3', () => new B3Propagator()],
  ['b3multi', () => new B3Propagator({ injectEncoding: B3InjectEncoding.MULTI_HEADER })],
])
const DEFAULT_PROPAGATORS = ['tracecontext', 'baggage']

/** Characters of one attribute, because clients choose some of them. */
const MAX_TEXT = 256

/**
 * The sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG name.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function samplerOf(env: Environment): Sampler {
  const name = env['OTEL_TRACES_SAMPLER']?.trim() || DEFAULT_SAMPLER
  const isParentBased = name.startsWith(PARENT_BASED)
  const root = rootSampler(isParentBased ? name.slice(PARENT_BASED.length) : name, env)
  if (root !== undefined) return isParentBased ? new ParentBasedSampler({ root }) : root
  diag.error(`unknown OTEL_TRACES_SAMPLER value "${name}", using ${DEFAULT_SAMPLER}; known: ${SAMPLERS}`)
  return new ParentBasedSampler({ root: new AlwaysOnSampler() })
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

/**
 * Reads and writes contexts in the formats of OTEL_PROPAGATORS; in none with `none`.
 * https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/#general-sdk-configuration
 */
export function propagatorOf(env: Environment): TextMapPropagator {
  const listed = [...new Set(splitList(env['OTEL_PROPAGATORS'] ?? ''))]
  const named = listed.length === 0 ? DEFAULT_PROPAGATORS : listed
  const propagators = named.includes('none') ? [] : named.flatMap(propagatorNamed)
  return new CompositePropagator({ propagators })
}

function propagatorNamed(name: string): TextMapPropagator[] {
  const make = PROPAGATORS.get(name)
  if (make !== undefined) return [make()]
  diag.warn(
    `OTEL_PROPAGATORS has "${name}", which is not supported; supported: ${[...PROPAGATORS.keys()].join(', ')}, none`,
  )
  return []
}

/** The limits of a span: those of its variables, texts at most 256 characters. */
export function spanLimits(env: Environment): SpanLimits {
  const text =
    positive(env['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT']) ??
    positive(env['OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT']) ??
    MAX_TEXT
  return {
    attributeCountLimit:
      numberFrom(ownValue(env, 'OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT')) ??
      numberFrom(ownValue(env, 'OTEL_ATTRIBUTE_COUNT_LIMIT')),
    attributeValueLengthLimit: Math.min(text, MAX_TEXT),
    eventCountLimit: numberFrom(ownValue(env, 'OTEL_SPAN_EVENT_COUNT_LIMIT')),
  }
}

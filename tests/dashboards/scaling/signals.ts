import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Content } from '../../deploy/chart-objects.ts'
import { REPOSITORY } from '../../support/server-process.ts'
import { WINDOW_S } from '../files.ts'
import type { Sample } from '../prometheus.ts'
import { NAMESPACE } from './release.ts'

/** What an autoscaler asks Prometheus for, and what it makes of the answer. */
export interface Signal {
  readonly name: string
  readonly query: string
  /** What pods share (AverageValue), or what is the same for all of them (Value). */
  readonly type: 'Value' | 'AverageValue'
  readonly threshold: number
  readonly minReplicas: number
  readonly maxReplicas: number
  /** One series for each pod, of which the autoscaler takes the sum; otherwise there may be only one. */
  readonly isByPod: boolean
}

interface ScaledObject extends Content {
  spec: {
    minReplicaCount: number
    maxReplicaCount: number
    triggers: {
      name?: string
      metricType: 'Value' | 'AverageValue'
      metadata: { query: string; threshold: string }
    }[]
  }
}
interface Autoscaler extends Content {
  spec: {
    minReplicas: number
    maxReplicas: number
    metrics: {
      type: string
      pods?: { metric: { name: string }; target: { averageValue: string } }
    }[]
  } & Content['spec']
}

/** The tolerance of a HorizontalPodAutoscaler, which KEDA uses too, around its target. */
const TOLERANCE = 0.1
const PAGE = join(REPOSITORY, 'docs', 'autoscaling.md')

/** The signals of a ScaledObject or HorizontalPodAutoscaler. CPU and memory do not come from Prometheus. */
export function signalsOf(object: Content, source: string): Signal[] {
  if (object.kind === 'ScaledObject') return ofScaledObject(object as ScaledObject, source)
  if (object.kind === 'HorizontalPodAutoscaler') return ofAutoscaler(object as Autoscaler, source)
  return []
}

/** The signals of the examples in docs/autoscaling.md. */
export function documentedSignals(): Signal[] {
  const objects = blocks('yaml').map((text) => parse(text) as Content)
  return objects.flatMap((object) => signalsOf(object, 'docs'))
}

/** The single queries of docs/autoscaling.md, which look back for as long as this test runs its phases. */
export function documentedQueries(): string[] {
  return blocks('promql')
    .flatMap((text) => text.trim().split('\n'))
    .map((query) => query.replaceAll('[1m]', `[${WINDOW_S}s]`))
}

/** The number that the autoscaler takes from an answer. @throws Error where it would take none */
export function valueOf({ name, isByPod }: Signal, samples: readonly Sample[], pods: number): number {
  const expected = isByPod ? pods : 1
  const values = samples.map(({ value }) => Number(value[1]))
  if (values.length !== expected)
    throw new Error(`${name} has ${values.length} series instead of ${expected}`)
  const sum = values.reduce((total, value) => total + value, 0)
  if (!Number.isFinite(sum)) throw new Error(`${name} is ${sum}`)
  return sum
}

/** How many pods a HorizontalPodAutoscaler takes, as its page in Kubernetes' documentation computes it. */
export function desiredPods(signal: Signal, value: number, pods: number): number {
  const { type, threshold, minReplicas, maxReplicas } = signal
  const ratio = type === 'Value' ? value / threshold : value / (threshold * pods)
  const wanted = Math.abs(ratio - 1) <= TOLERANCE ? pods : Math.ceil(ratio * pods)
  return Math.min(Math.max(wanted, minReplicas), maxReplicas)
}

function ofScaledObject({ spec }: ScaledObject, source: string): Signal[] {
  return spec.triggers.map(({ name, metricType, metadata }) => ({
    name: `${source}, KEDA: ${name ?? metadata.query}`,
    query: metadata.query,
    type: metricType,
    threshold: Number(metadata.threshold),
    minReplicas: spec.minReplicaCount,
    maxReplicas: spec.maxReplicaCount,
    isByPod: false,
  }))
}

/** Metrics of pods, as the default rules of prometheus-adapter query them. */
function ofAutoscaler({ spec }: Autoscaler, source: string): Signal[] {
  return spec.metrics.flatMap(({ pods }) => {
    if (pods === undefined) return []
    const { metric, target } = pods
    return {
      name: `${source}, HPA: ${metric.name}`,
      query: `sum by (pod) (${metric.name}{namespace="${NAMESPACE}",pod=~"story-.*"})`,
      type: 'AverageValue' as const,
      threshold: quantity(target.averageValue),
      minReplicas: spec.minReplicas,
      maxReplicas: spec.maxReplicas,
      isByPod: true,
    }
  })
}

/** A quantity of Kubernetes without or with milli. */
function quantity(text: string): number {
  return text.endsWith('m') ? Number(text.slice(0, -1)) / 1000 : Number(text)
}

function blocks(language: string): string[] {
  const fence = new RegExp('^```' + language + '\\n([^]*?)^```', 'gm')
  return [...readFileSync(PAGE, 'utf8').matchAll(fence)].map(([, text]) => text!)
}

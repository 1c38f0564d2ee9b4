import type { Scope } from '../auth/principal.ts'
import { commonDefinitions, GrpcServers, type ListenerPlan } from '../edge/grpc/server.ts'
import type { ServiceFacts } from '../edge/grpc/definitions.ts'
import { isServerReady } from '../models/readiness.ts'
import type {
  GrpcDeps,
  GrpcDialect,
  GrpcListenerKind,
  GrpcServersDeps,
  GrpcSettings,
} from './grpc-dialect.ts'
import { GRPC_DIALECTS } from './index.ts'

type Place = Omit<ListenerPlan, 'services' | 'isServing' | 'pool'>

/** The gRPC servers of a configuration; they listen after `listen`. */
export function createGrpcServers(
  deps: GrpcServersDeps,
  dialects: readonly GrpcDialect[] = GRPC_DIALECTS,
): GrpcServers<GrpcListenerKind> {
  const { models, workflows, settings, log, audit } = deps
  const operations = { models, workflows }
  const own: GrpcDeps = { settings, log, audit }
  const plans = [...placesOf(settings)].map(([kind, place]): [GrpcListenerKind, ListenerPlan] => {
    const services = dialectsOn(kind, settings, dialects).map((dialect) => {
      return { ...dialect.facts(kind), implementation: dialect.implement(own, kind) }
    })
    // Management is there when it answers, whatever the models do.
    const isServing = () => (kind === 'management' ? Promise.resolve(true) : isServerReady(models))
    const pool =
      kind === 'management' ? deps.admission.reserve?.('gRPC management') : deps.admission.inference
    return [kind, { ...place, services, isServing, pool, reflectionScope: reflectionScope(kind, settings) }]
  })
  return new GrpcServers(new Map(plans), { ...deps, operations, limits: settings })
}

/** Every service of a listener, health and reflection included; `rpcsOf` has their rpcs. */
export function grpcServices(
  kind: GrpcListenerKind,
  settings: GrpcSettings,
  dialects: readonly GrpcDialect[] = GRPC_DIALECTS,
): ServiceFacts[] {
  const own = dialectsOn(kind, settings, dialects).map((dialect) => dialect.facts(kind))
  return [...own, ...commonDefinitions(reflectionScope(kind, settings))]
}

function reflectionScope(kind: GrpcListenerKind, settings: GrpcSettings): Scope | undefined {
  if (!settings.grpcReflectionRequireToken) return undefined
  return kind === 'management' ? 'management' : 'inference'
}

function dialectsOn(
  kind: GrpcListenerKind,
  settings: GrpcSettings,
  dialects: readonly GrpcDialect[],
): GrpcDialect[] {
  return dialects.filter(({ listeners, isOn }) => listeners.includes(kind) && isOn?.(settings) !== false)
}

/** The listeners that are to be opened. */
function placesOf(settings: GrpcSettings): ReadonlyMap<GrpcListenerKind, Place> {
  const { openInferenceGrpcAddress: host, openInferenceGrpcPort, tritonGrpcPort } = settings
  const places = new Map<GrpcListenerKind, Place>([
    [
      'inference',
      {
        name: 'gRPC inference',
        setting: 'grpc_inference_port',
        host: settings.grpcInferenceAddress,
        port: settings.grpcInferencePort,
        maxConnectionAgeMs: settings.grpcInferenceMaxConnectionAgeMs,
        maxConnectionAgeGraceMs: settings.grpcInferenceMaxConnectionAgeGraceMs,
      },
    ],
    [
      'management',
      {
        name: 'gRPC management',
        setting: 'grpc_management_port',
        host: settings.grpcManagementAddress,
        port: settings.grpcManagementPort,
        maxConnectionAgeMs: settings.grpcManagementMaxConnectionAgeMs,
        maxConnectionAgeGraceMs: settings.grpcManagementMaxConnectionAgeGraceMs,
      },
    ],
  ])
  if (openInferenceGrpcPort !== undefined) {
    places.set('open-inference', {
      name: 'gRPC Open Inference (mlserver)',
      setting: 'open_inference_grpc_port',
      host,
      port: openInferenceGrpcPort,
    })
  }
  if (tritonGrpcPort !== undefined) {
    places.set('triton', {
      name: 'gRPC Open Inference (triton)',
      setting: 'triton_grpc_port',
      host,
      port: tritonGrpcPort,
    })
  }
  return places
}

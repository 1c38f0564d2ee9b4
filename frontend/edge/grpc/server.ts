import { setLogger, type ServerOptions } from '@grpc/grpc-js'
import type { Authorizer } from '../../auth/authorizer.ts'
import type { Settings } from '../../config/settings.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { isServerReady } from '../../models/readiness.ts'
import type { SequenceSettings } from '../../jobs/sequence-headers.ts'
import { loadInferenceV2, loadOpenInference, loadServices } from './definitions.ts'
import {
  forAll,
  forInferenceV2,
  withInferenceToken,
  withManagementToken,
  type ServedService,
} from './access.ts'
import { accessLogged } from './access-log.ts'
import type { WorkflowOperations } from '../../workflows/operations.ts'
import { eagerCalls } from './eager-call.ts'
import { HealthService } from './health.ts'
import { inferenceV2Service } from '../../dialects/open-inference/grpc-service.ts'
import type { StreamShape } from '../../dialects/open-inference/grpc-shape.ts'
import { InferenceService } from '../../dialects/torchserve/grpc-inference.ts'
import { GrpcListener, type BoundAddress, type GrpcTls } from './listener.ts'
import type { GrpcLog } from './log.ts'
import type { GrpcLimits } from './limits.ts'
import { managementService } from '../../dialects/torchserve/grpc-management.ts'
import { openInferenceService } from '../../dialects/torchserve/open-inference/grpc-service.ts'
import { reflectionService } from './reflection.ts'

/** What the gRPC servers need to know of the configuration. */
export type GrpcSettings = Pick<
  Settings,
  | 'grpcInferenceAddress'
  | 'grpcInferencePort'
  | 'grpcManagementAddress'
  | 'grpcManagementPort'
  | 'openInferenceGrpcAddress'
  | 'openInferenceGrpcPort'
  | 'tritonGrpcPort'
  | 'grpcInferenceMaxConnectionAgeMs'
  | 'grpcInferenceMaxConnectionAgeGraceMs'
  | 'grpcManagementMaxConnectionAgeMs'
  | 'grpcManagementMaxConnectionAgeGraceMs'
  | 'maxRequestSize'
  | 'maxResponseSize'
  | 'enableModelApi'
  | 'openInferenceProtocol'
> &
  GrpcLimits &
  SequenceSettings

interface GrpcDeps {
  models: ModelOperations
  workflows: WorkflowOperations
  authorizer: Authorizer
  settings: GrpcSettings
  log: GrpcLog
  /** Undefined: there is none. */
  accessLog?: AccessLog
}

/** Where the two services listen. */
interface GrpcAddresses {
  inference: BoundAddress
  management: BoundAddress
  /** Open Inference with MLServer's streams, and with Triton's; undefined: not opened. */
  openInference?: BoundAddress
  triton?: BoundAddress
}

/** An idle connection is asked for a sign of life after this time, as grpc-java does: long streams may stay silent. */
const KEEPALIVE_TIME_MS = 2 * 60 * 60 * 1000

/** Builds both gRPC servers; they listen after `listen`. */
export function createGrpcServers(deps: GrpcDeps): GrpcServers {
  return new GrpcServers(deps)
}

/** The inference and the management service, each on a listener of its own. */
export class GrpcServers {
  readonly #log: GrpcLog
  readonly #settings: GrpcSettings
  /** The listener of the inference API. */
  readonly inference: GrpcListener
  readonly #management: GrpcListener
  readonly #openInference: GrpcListener | undefined
  readonly #triton: GrpcListener | undefined
  readonly #health: HealthService[] = []

  constructor(deps: GrpcDeps) {
    quietGrpc(deps.log)
    const services = loadServices()
    const { settings, models } = deps
    const logged = accessLogged(deps.accessLog)
    const options = serverOptions(settings)
    this.#settings = settings
    this.#log = deps.log
    const inference: ServedService[] = [
      {
        service: services.inference,
        implementation: new InferenceService(deps).implementation(),
        access: withInferenceToken,
      },
    ]
    if (settings.openInferenceProtocol) {
      const implementation = openInferenceService(deps)
      inference.push({ service: loadOpenInference(), implementation, access: withInferenceToken })
    }
    this.inference = new GrpcListener({
      ...deps,
      name: 'gRPC inference',
      served: this.#withHealth(inference, services, () => isServerReady(models)),
      limits: settings,
      accessLog: deps.accessLog,
      grpc: {
        ...options,
        ...connectionAge(
          settings.grpcInferenceMaxConnectionAgeMs,
          settings.grpcInferenceMaxConnectionAgeGraceMs,
        ),
        interceptors: [...logged, eagerCalls(services.inference.name)],
      },
    })
    const management = {
      service: services.management,
      implementation: managementService(deps),
      access: withManagementToken,
    }
    this.#management = new GrpcListener({
      ...deps,
      name: 'gRPC management',
      served: this.#withHealth([management], services, () => Promise.resolve(true)),
      limits: settings,
      accessLog: deps.accessLog,
      grpc: {
        ...options,
        ...connectionAge(
          settings.grpcManagementMaxConnectionAgeMs,
          settings.grpcManagementMaxConnectionAgeGraceMs,
        ),
        interceptors: logged,
      },
    })
    this.#openInference = this.#openV2(deps, 'mlserver', settings.openInferenceGrpcPort, services)
    this.#triton = this.#openV2(deps, 'triton', settings.tritonGrpcPort, services)
  }

  /** The Open Inference Protocol in its own package, with the streams of one of its peers; undefined: without a port. */
  #openV2(
    deps: GrpcDeps,
    shape: StreamShape,
    port: number | undefined,
    common: ReturnType<typeof loadServices>,
  ): GrpcListener | undefined {
    if (port === undefined) return undefined
    const { mlserver, triton } = loadInferenceV2()
    const encode = { mlserver: mlserver.encodeStreamed, triton: triton.encodeStreamed }
    const served: ServedService = {
      service: shape === 'mlserver' ? mlserver : triton,
      implementation: inferenceV2Service(deps, { shape, encode }),
      access: forInferenceV2,
    }
    return new GrpcListener({
      ...deps,
      name: `gRPC Open Inference (${shape})`,
      served: this.#withHealth([served], common, () => isServerReady(deps.models)),
      limits: deps.settings,
      accessLog: deps.accessLog,
      grpc: { ...serverOptions(deps.settings), interceptors: accessLogged(deps.accessLog) },
    })
  }

  /** @throws ServeError CONFIG when an address cannot be used; then neither listens. */
  async listen(tls?: GrpcTls): Promise<GrpcAddresses> {
    const { grpcInferenceAddress, grpcInferencePort, grpcManagementAddress, grpcManagementPort } =
      this.#settings
    try {
      const inference = await this.inference.listen(grpcInferenceAddress, grpcInferencePort, tls)
      const management = await this.#management.listen(grpcManagementAddress, grpcManagementPort, tls)
      return { inference, management, ...(await this.#listenV2(tls)) }
    } catch (error) {
      this.forceShutdown()
      throw error
    }
  }

  async #listenV2(tls: GrpcTls | undefined): Promise<Partial<GrpcAddresses>> {
    const { openInferenceGrpcAddress: host, openInferenceGrpcPort, tritonGrpcPort } = this.#settings
    return {
      openInference: await this.#openInference?.listen(host, openInferenceGrpcPort!, tls),
      triton: await this.#triton?.listen(host, tritonGrpcPort!, tls),
    }
  }

  /** No new calls; resolves when the running ones have ended. `forceShutdown` cuts it short. */
  async drain(): Promise<void> {
    for (const health of this.#health) health.close()
    await Promise.all(this.#listeners().map((listener) => listener.drain()))
  }

  /** Breaks every connection now; running jobs are cancelled. */
  forceShutdown(): void {
    for (const listener of this.#listeners()) listener.forceShutdown()
  }

  #listeners(): GrpcListener[] {
    const all = [this.inference, this.#management, this.#openInference, this.#triton]
    return all.filter((listener) => listener !== undefined)
  }

  /** The services, and health and reflection for them. */
  #withHealth(
    served: readonly ServedService[],
    { health, reflection, reflectionAlpha }: ReturnType<typeof loadServices>,
    isServing: () => Promise<boolean>,
  ): ServedService[] {
    const own = served.map(({ service }) => service)
    const healthService = new HealthService(
      own.map(({ name }) => name),
      isServing,
    )
    this.#health.push(healthService)
    const reflected = reflectionService([...own, health, reflection, reflectionAlpha], this.#log)
    return [
      ...served,
      { service: health, implementation: healthService.implementation(), access: forAll },
      { service: reflection, implementation: reflected, access: forAll },
      { service: reflectionAlpha, implementation: reflected, access: forAll },
    ]
  }
}

function serverOptions(settings: GrpcSettings): ServerOptions {
  return {
    'grpc.max_receive_message_length': settings.maxRequestSize,
    'grpc.max_send_message_length': -1,
    'grpc.keepalive_time_ms': KEEPALIVE_TIME_MS,
  }
}

/** grpc-js says GOAWAY after the age, spread by a tenth, and breaks what still runs after the grace. Absent: never. */
function connectionAge(ageMs: number | undefined, graceMs: number | undefined): ServerOptions {
  return {
    ...(ageMs === undefined ? {} : { 'grpc.max_connection_age_ms': ageMs }),
    ...(graceMs === undefined ? {} : { 'grpc.max_connection_age_grace_ms': graceMs }),
  }
}

/** grpc-js writes to stderr; what it says reaches us as errors, so it may go to the log. */
function quietGrpc(log: GrpcLog): void {
  const write = (message?: unknown): void => log.debug({}, `grpc-js: ${String(message)}`)
  setLogger({ error: write, info: write, debug: write })
}

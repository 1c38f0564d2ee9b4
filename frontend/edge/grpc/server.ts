import { type ServerOptions, setLogger } from '@grpc/grpc-js'
import type { Authorizer } from '../../auth/gatekeeper.ts'
import type { Scope } from '../../auth/principal.ts'
import type { RateLimiter } from '../../auth/rate-limiter.ts'
import type { AuditLog } from '../../observe/logs/audit-log.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { Tracing } from '../../observe/traces/tracing.ts'
import type { Operations } from '../call.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import type { ConnectionPool } from '../admission/connection-pool.ts'
import { commonError, type GrpcLog } from './call-error.ts'
import { type GrpcService, loadService, type ServiceFacts } from './definitions.ts'
import { eagerCalls } from './eager-call.ts'
import { HealthService } from './health.ts'
import { type BoundAddress, GrpcListener, type GrpcTls } from './listener.ts'
import { type GrpcLimits, type GrpcTimes, TIMES } from './limits.ts'
import { reflectionService } from './reflection.ts'

/** One listener and what it serves. */
export interface ListenerPlan {
  /** Tells the listeners apart in errors. */
  readonly name: string
  /** The configuration key of its port, for the same. */
  readonly setting: string
  readonly host: string
  /** 0 takes any free one. */
  readonly port: number
  readonly services: readonly GrpcService[]
  /** What its health service says. */
  isServing(): Promise<boolean>
  /**
   * Milliseconds after which the server says goodbye to a connection, spread by a tenth; undefined: never.
   */
  readonly maxConnectionAgeMs?: number
  /** Milliseconds that its calls may then go on; undefined: as long as they like. */
  readonly maxConnectionAgeGraceMs?: number
  /** Limits its connections; undefined: nothing does. */
  readonly pool?: ConnectionPool | undefined
  /** What reflection asks for; absent: nothing. */
  readonly reflectionScope?: Scope
}

/** What every listener needs. */
export interface ListenersDeps {
  readonly operations: Operations
  readonly authorizer: Authorizer
  readonly limits: GrpcLimits
  readonly log: GrpcLog
  /** Undefined: there is none. */
  readonly accessLog?: AccessLog
  /** Undefined: it is not written. */
  readonly audit?: AuditLog
  /** Undefined: nothing is limited. */
  readonly limiter?: RateLimiter
  /** Undefined: refusals are not counted. */
  readonly refusals?: Pick<Refusals, 'count'>
  /** Undefined: tracing is off. */
  readonly tracing?: Tracing
  readonly admission: ClientAdmission
  /** Default: TIMES. */
  readonly times?: GrpcTimes
}

/**
 * An idle connection is asked for a sign of life after this time, as grpc-java does: long streams may stay
 * silent.
 */
const KEEPALIVE_TIME_MS = 2 * 60 * 60 * 1000

/** All gRPC listeners, each with health and reflection beside its own services. */
export class GrpcServers<Kind extends string = string> {
  readonly #plans: ReadonlyMap<Kind, ListenerPlan>
  readonly #listeners = new Map<Kind, GrpcListener>()
  readonly #health: HealthService[] = []
  readonly #log: GrpcLog

  constructor(plans: ReadonlyMap<Kind, ListenerPlan>, deps: ListenersDeps) {
    quietGrpc(deps.log)
    this.#log = deps.log
    this.#plans = plans
    for (const [kind, plan] of plans) this.#listeners.set(kind, this.#create(plan, deps))
  }

  /** @throws Error when there is none of this kind */
  listener(kind: Kind): GrpcListener {
    const listener = this.#listeners.get(kind)
    if (listener === undefined) throw new Error(`There is no ${kind} listener`)
    return listener
  }

  /** @throws ServeError CONFIG when an address cannot be used; then none listens. */
  async listen(tls?: GrpcTls): Promise<ReadonlyMap<Kind, BoundAddress>> {
    const bound = new Map<Kind, BoundAddress>()
    try {
      for (const [kind, { host, port }] of this.#plans) {
        bound.set(kind, await this.listener(kind).listen(host, port, tls))
      }
      return bound
    } catch (error) {
      this.forceShutdown()
      throw error
    }
  }

  /** No new calls; resolves when the running ones have ended. `forceShutdown` cuts it short. */
  async drain(): Promise<void> {
    for (const health of this.#health) health.close()
    await Promise.all([...this.#listeners.values()].map((listener) => listener.drain()))
  }

  /** Breaks every connection now; running jobs are cancelled. */
  forceShutdown(): void {
    for (const listener of this.#listeners.values()) listener.forceShutdown()
  }

  #create(plan: ListenerPlan, deps: ListenersDeps): GrpcListener {
    const { operations, authorizer, limits, accessLog, audit, limiter, refusals, tracing, admission } = deps
    const { name, setting, services } = plan
    const eager = services.filter(({ eager }) => eager).map(({ definition }) => definition.name)
    return new GrpcListener({
      name,
      setting,
      services: [...services, ...this.#commonServices(plan)],
      operations,
      authorizer,
      limits,
      accessLog,
      pool: plan.pool,
      audit,
      limiter,
      refusals,
      tracing,
      admission,
      times: deps.times ?? TIMES,
      grpc: {
        'grpc.max_receive_message_length': limits.maxRequestSize,
        'grpc.max_send_message_length': -1,
        'grpc.keepalive_time_ms': KEEPALIVE_TIME_MS,
        ...connectionAge(plan),
        interceptors: eager.map(eagerCalls),
      },
    })
  }

  /** Health and reflection. */
  #commonServices({ services, isServing, reflectionScope }: ListenerPlan): GrpcService[] {
    const own = services.map(({ definition }) => definition)
    const health = new HealthService(
      own.map(({ name }) => name),
      isServing,
    )
    this.#health.push(health)
    const common = commonDefinitions(reflectionScope)
    const reflection = reflectionService([...own, ...common.map(({ definition }) => definition)], this.#log)
    return common.map(({ kind, ...facts }) => {
      const implementation = kind === 'health' ? health.implementation() : reflection
      return { ...facts, implementation }
    })
  }
}

type CommonService = ServiceFacts & { readonly kind: 'health' | 'reflection' }

let loaded: readonly Pick<CommonService, 'kind' | 'definition'>[] | undefined

/**
 * What each listener has. Those who probe health cannot send a token, and it tells nothing that is not
 * public; `reflectionScope` is what reflection asks for, undefined: nothing.
 */
export function commonDefinitions(reflectionScope: Scope | undefined): readonly CommonService[] {
  loaded ??= [
    { kind: 'health', definition: loadService('grpc/health/v1/health.proto', 'grpc.health.v1.Health') },
    {
      kind: 'reflection',
      definition: loadService('grpc/reflection/v1/reflection.proto', 'grpc.reflection.v1.ServerReflection'),
    },
    {
      kind: 'reflection',
      // What older tools ask; its messages are those of v1.
      definition: loadService(
        'grpc/reflection/v1alpha/reflection.proto',
        'grpc.reflection.v1alpha.ServerReflection',
      ),
    },
  ]
  return loaded.map(({ kind, definition }) => {
    const scope = kind === 'reflection' ? reflectionScope : undefined
    return { kind, definition, token: () => scope, toCallError: commonError }
  })
}

/** grpc-js says GOAWAY after the age and breaks what still runs after the grace. */
function connectionAge({ maxConnectionAgeMs, maxConnectionAgeGraceMs }: ListenerPlan): ServerOptions {
  return {
    ...(maxConnectionAgeMs !== undefined && { 'grpc.max_connection_age_ms': maxConnectionAgeMs }),
    ...(maxConnectionAgeGraceMs !== undefined && {
      'grpc.max_connection_age_grace_ms': maxConnectionAgeGraceMs,
    }),
  }
}

/** grpc-js writes to stderr; what it says reaches us as errors, so it may go to the log. */
function quietGrpc(log: GrpcLog): void {
  const write = (message?: unknown): void => log.debug({}, `grpc-js: ${String(message)}`)
  setLogger({ error: write, info: write, debug: write })
}

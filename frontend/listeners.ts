import { sameAddress } from './config/build-settings.ts'
import type { Settings } from './config/settings.ts'
import type { ListenAddress } from './config/listen-address.ts'
import type { GrpcListenerKind } from './dialects/grpc-dialect.ts'
import { createGrpcServers } from './dialects/grpc-servers.ts'
import type { GrpcServers } from './edge/grpc/server.ts'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from './dialects/rest-apps.ts'
import type { RestApp, RestDeps } from './edge/http/app.ts'
import { servesManagement } from './edge/http/page-check.ts'
import { Admission } from './edge/admission/admission.ts'
import { listen, type Listener } from './edge/http/server.ts'
import type { Logger } from './observe/logs/logger.ts'
import type { Metrics } from './observe/metrics/metrics.ts'
import type { StartOptions } from './server-api.ts'
import { grpcCredentials, restCredentials, type TlsCredentials } from './tls/credentials.ts'

export interface ListenerDeps
  extends
    Omit<RestDeps, 'admission' | 'metrics' | 'settings' | 'log'>,
    Pick<StartOptions, 'restDialects' | 'grpcDialects' | 'portFlag'> {
  settings: Settings
  metrics: Metrics
  log: Logger
}

/** What the start says of each gRPC listener. */
const GRPC_NAMES: Readonly<Record<GrpcListenerKind, string>> = {
  inference: 'Inference gRPC API',
  management: 'Management gRPC API',
  'open-inference': 'Open Inference gRPC API',
  triton: 'Open Inference gRPC API (Triton)',
}

/** All listeners of the server. */
export class Listeners {
  /** Names and addresses, in the order to print. */
  readonly listening: { name: string; address: string }[] = []
  /** See RunningServer. */
  consoleUrl: string | undefined
  readonly #deps: ListenerDeps
  readonly #rest: Listener[] = []
  /** Serves until the end, so that the drain can be watched. */
  #metrics: Listener | undefined
  readonly #apps: RestApp[] = []
  readonly #grpc: GrpcServers<GrpcListenerKind>
  readonly #admission: Admission
  readonly #restDeps: RestDeps
  #restTls: Promise<TlsCredentials> | undefined
  /** What was warned of: REST and gRPC read the same key. */
  readonly #warned = new Set<string>()

  constructor(deps: ListenerDeps) {
    this.#deps = deps
    this.#admission = new Admission(
      deps.settings,
      (message) => deps.log.warn(message),
      (pool) => deps.metrics.refusals.watch(pool),
    )
    this.#restDeps = { ...deps, admission: this.#admission }
    this.#grpc = createGrpcServers(
      { ...deps, refusals: deps.metrics.refusals, admission: this.#admission },
      deps.grpcDialects,
    )
  }

  /** @throws ServeError CONFIG when an address cannot be used; call destroy() then */
  async open(): Promise<void> {
    const { settings, restDialects } = this.#deps
    const { inferenceAddress, managementAddress, metricsAddress } = settings
    const plans: [name: string, key: string, address: ListenAddress, create: typeof createInferenceApp][] =
      sameAddress(inferenceAddress, managementAddress)
        ? [['Inference and Management', 'inference_address', inferenceAddress, createSharedApp]]
        : [
            ['Inference', 'inference_address', inferenceAddress, createInferenceApp],
            ['Management', 'management_address', managementAddress, createManagementApp],
          ]
    if (settings.enableMetricsApi)
      plans.push(['Metrics', 'metrics_address', metricsAddress, createMetricsApp])
    for (const [name, key, address, create] of plans)
      await this.#openRest(name, key, address, create(this.#restDeps, restDialects))
    const credentials = await grpcCredentials(settings, this.#warnOnce)
    const bound = await this.#grpc.listen(credentials)
    for (const [kind, address] of bound) {
      this.listening.push({ name: GRPC_NAMES[kind], address: hostAndPort(address) })
    }
  }

  /** Refuses new requests; running ones continue. */
  beginDrain(): void {
    for (const app of this.#apps) app.beginDrain()
  }

  /** Accepts no more connections, except for metrics; resolves when the last one has ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#rest.map((listener) => listener.close()), this.#grpc.drain()])
    this.#admission.cuts.close()
  }

  /** Ends the metrics, after close(). */
  async closeMetrics(): Promise<void> {
    await this.#metrics?.close()
  }

  /** Ends every connection at once. */
  destroy(): void {
    for (const listener of [...this.#rest, this.#metrics]) listener?.destroyAll()
    this.#grpc.forceShutdown()
    this.#admission.cuts.close()
  }

  /** `key`: the configuration key of the address. */
  async #openRest(name: string, key: string, address: ListenAddress, app: RestApp): Promise<void> {
    const { listener: kind } = app.state
    const isReserved = kind === 'management' || kind === 'metrics'
    const pool = isReserved ? this.#admission.reserve(kind) : this.#admission.inference
    const setting = this.#deps.portFlag ?? key
    const listener = await listen(`${name} REST`, address, app, {
      setting,
      tls: await this.#tlsFor(address),
      pool,
    })
    if (kind === 'metrics') this.#metrics = listener
    else {
      this.#apps.push(app)
      this.#rest.push(listener)
    }
    this.listening.push({ name: `${name} REST API`, address: listener.address })
    if (this.#deps.settings.enableConsole && servesManagement(kind) && address.kind === 'tcp')
      this.consoleUrl = `${listener.address}/console`
  }

  /**
   * TLS credentials of an address; undefined for http and Unix sockets. All https listeners share one pair.
   */
  #tlsFor(address: ListenAddress): Promise<TlsCredentials> | undefined {
    if (address.kind !== 'tcp' || !address.tls) return undefined
    this.#restTls ??= restCredentials(this.#deps.settings, this.#warnOnce)
    return this.#restTls
  }

  readonly #warnOnce = (message: string): void => {
    if (this.#warned.has(message)) return
    this.#warned.add(message)
    this.#deps.log.warn(message)
  }
}

function hostAndPort({ host, port }: { host: string; port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

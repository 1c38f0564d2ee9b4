import type { Authorizer } from './auth/authorizer.ts'
import { sameAddress } from './config/build-settings.ts'
import type { ListenAddress, Settings } from './config/settings.ts'
import { createGrpcServers, type GrpcServers } from './edge/grpc/server.ts'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
  type RestApp,
} from './edge/http/app.ts'
import { listen, type Listener } from './edge/http/server.ts'
import type { Logger } from './observe/logs/logger.ts'
import type { AccessLog } from './observe/logs/access-log.ts'
import type { Metrics } from './observe/metrics/metrics.ts'
import type { ModelOperations } from './models/operations.ts'
import { grpcCredentials, restCredentials, type TlsCredentials } from './tls/credentials.ts'
import type { WorkflowOperations } from './workflows/operations.ts'

export interface ListenerDeps {
  settings: Settings
  models: ModelOperations
  workflows: WorkflowOperations
  authorizer: Authorizer
  metrics: Metrics
  log: Logger
  accessLog?: AccessLog
}

/** Everything that listens for clients. */
export class Listeners {
  /** What listens where, in the order to print. */
  readonly listening: { name: string; address: string }[] = []
  readonly #deps: ListenerDeps
  readonly #rest: Listener[] = []
  readonly #apps: RestApp[] = []
  readonly #grpc: GrpcServers
  #restTls: Promise<TlsCredentials> | undefined

  constructor(deps: ListenerDeps) {
    this.#deps = deps
    this.#grpc = createGrpcServers(deps)
  }

  /** @throws ServeError CONFIG when an address cannot be used; what listens already must be destroyed then */
  async open(): Promise<void> {
    const { settings } = this.#deps
    if (sameAddress(settings.inferenceAddress, settings.managementAddress)) {
      await this.#openRest('Inference and Management', settings.inferenceAddress, createSharedApp(this.#deps))
    } else {
      await this.#openRest('Inference', settings.inferenceAddress, createInferenceApp(this.#deps))
      await this.#openRest('Management', settings.managementAddress, createManagementApp(this.#deps))
    }
    if (settings.enableMetricsApi) {
      await this.#openRest('Metrics', settings.metricsAddress, createMetricsApp(this.#deps))
    }
    const { inference, management, openInference, triton } = await this.#grpc.listen(
      await grpcCredentials(settings, (message) => this.#deps.log.warn(message)),
    )
    this.listening.push(
      { name: 'Inference gRPC API', address: hostAndPort(inference) },
      { name: 'Management gRPC API', address: hostAndPort(management) },
    )
    if (openInference !== undefined)
      this.listening.push({ name: 'Open Inference gRPC API', address: hostAndPort(openInference) })
    if (triton !== undefined)
      this.listening.push({ name: 'Open Inference gRPC API (Triton)', address: hostAndPort(triton) })
  }

  /** New requests are refused from now on; running ones go on. */
  beginDrain(): void {
    for (const app of this.#apps) app.beginDrain()
  }

  /** Takes no more connections; resolves when the last has ended. */
  async close(): Promise<void> {
    await Promise.all([...this.#rest.map((listener) => listener.close()), this.#grpc.drain()])
  }

  /** Ends every connection at once. */
  destroy(): void {
    for (const listener of this.#rest) listener.destroyAll()
    this.#grpc.forceShutdown()
  }

  async #openRest(name: string, address: ListenAddress, app: RestApp): Promise<void> {
    const listener = await listen(`${name} REST`, address, app, await this.#tlsFor(address))
    this.#apps.push(app)
    this.#rest.push(listener)
    this.listening.push({ name: `${name} REST API`, address: listener.address })
  }

  /** Undefined for http and Unix sockets. All https listeners share one pair. */
  #tlsFor(address: ListenAddress): Promise<TlsCredentials> | undefined {
    if (address.kind !== 'tcp' || !address.tls) return undefined
    this.#restTls ??= restCredentials(this.#deps.settings, (message) => this.#deps.log.warn(message))
    return this.#restTls
  }
}

function hostAndPort({ host, port }: { host: string; port: number }): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

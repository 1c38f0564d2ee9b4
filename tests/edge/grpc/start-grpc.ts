import { type Client, Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../../frontend/auth/gatekeeper.ts'
import { ANYBODY, type Principal } from '../../../frontend/auth/principal.ts'
import type {
  GrpcListenerKind,
  GrpcServersDeps,
  GrpcSettings,
} from '../../../frontend/dialects/grpc-dialect.ts'
import { createGrpcServers } from '../../../frontend/dialects/grpc-servers.ts'
import type { GrpcServers } from '../../../frontend/edge/grpc/server.ts'
import {
  call,
  type GrpcError,
  type GrpcStream,
  inferenceClient,
  managementClient,
} from '../../support/grpc-clients.ts'
import { FakeWorkflows } from '../../support/fake-workflows.ts'
import { Budget } from '../../../frontend/edge/admission/budget.ts'
import { testAdmission } from '../../support/admission.ts'
import { FakeModels } from './fake-models.ts'

/** Long enough for a call to reach the server on a busy machine. */
export const DEADLINE_MS = 1_500

export const SETTINGS: GrpcSettings = {
  grpcInferenceAddress: '127.0.0.1',
  grpcInferencePort: 0,
  grpcManagementAddress: '127.0.0.1',
  grpcManagementPort: 0,
  openInferenceGrpcAddress: '127.0.0.1',
  openInferenceGrpcPort: undefined,
  tritonGrpcPort: undefined,
  grpcInferenceMaxConnectionAgeMs: undefined,
  grpcInferenceMaxConnectionAgeGraceMs: undefined,
  grpcManagementMaxConnectionAgeMs: undefined,
  grpcManagementMaxConnectionAgeGraceMs: undefined,
  grpcMaxConcurrentStreams: 256,
  maxRequestSize: 1_000_000,
  maxRequestElements: 250_000,
  maxResponseSize: 1_000_000,
  enableModelApi: true,
  tsHeaderKeySequenceId: 'ts_request_sequence_id',
  tsHeaderKeySequenceStart: 'ts_request_sequence_start',
  tsHeaderKeySequenceEnd: 'ts_request_sequence_end',
  openInferenceProtocol: false,
  grpcReflectionRequireToken: false,
}

/** Takes anything, or only `Bearer <kind>`. */
export class FakeAuthorizer implements Authorizer {
  enabled = false

  check(kind: string, authorization: string | undefined): Principal {
    if (!this.enabled || authorization === `Bearer ${kind}`) return ANYBODY
    throw new ServeError('UNAUTHORIZED', 'Token Authorization failed.')
  }

  rotate(): Promise<void> {
    throw new Error('not used')
  }
}

/** Both servers on free ports with a client each. */
export class RunningGrpc {
  readonly models: FakeModels
  readonly workflows: FakeWorkflows
  readonly authorizer: FakeAuthorizer
  readonly servers: GrpcServers<GrpcListenerKind>
  readonly inference: ReturnType<typeof inferenceClient>
  readonly management: ReturnType<typeof managementClient>
  readonly port: number
  readonly managementPort: number
  /** All listeners, those of Open Inference too where `settings` open them. */
  readonly bound: ReadonlyMap<GrpcListenerKind, { readonly port: number }>
  readonly logged: string[]
  /** Bytes of requests that clients hold. */
  readonly requests: Budget

  constructor(init: Omit<RunningGrpc, 'inference' | 'management' | 'close'>) {
    this.models = init.models
    this.workflows = init.workflows
    this.authorizer = init.authorizer
    this.servers = init.servers
    this.port = init.port
    this.managementPort = init.managementPort
    this.bound = init.bound
    this.logged = init.logged
    this.requests = init.requests
    this.inference = inferenceClient(init.port)
    this.management = managementClient(init.managementPort)
  }

  /** Waits for every call to end: a call that leaks makes its test time out. */
  async close(): Promise<void> {
    for (const client of [this.inference, this.management] as Client[]) client.close()
    await this.servers.drain()
  }
}

type MoreDeps = Partial<Pick<GrpcServersDeps, 'authorizer' | 'limiter' | 'audit' | 'accessLog' | 'times'>> & {
  /** What all clients may hold; one address has half. */
  requestBytes?: number
}

export async function startGrpc(
  settings: Partial<GrpcSettings> = {},
  { requestBytes, ...more }: MoreDeps = {},
): Promise<RunningGrpc> {
  const models = new FakeModels()
  const workflows = new FakeWorkflows()
  const authorizer = new FakeAuthorizer()
  const logged: string[] = []
  const log = { debug: () => undefined, error: (_: object, message: string) => void logged.push(message) }
  const admission = testAdmission(requestBytes === undefined ? {} : { requests: new Budget(requestBytes) })
  const servers = createGrpcServers({
    admission,
    models,
    workflows,
    authorizer,
    settings: { ...SETTINGS, ...settings },
    log,
    ...more,
  })
  const bound = await servers.listen()
  return new RunningGrpc({
    models,
    workflows,
    authorizer,
    servers,
    logged,
    requests: admission.requests,
    port: bound.get('inference')!.port,
    managementPort: bound.get('management')!.port,
    bound,
  })
}

export function metadata(entries: Record<string, string>): Metadata {
  const result = new Metadata()
  for (const [name, value] of Object.entries(entries)) result.set(name, value)
  return result
}

export function token(kind: string): Metadata {
  return metadata({ authorization: `Bearer ${kind}` })
}

export const REQUEST = { model_name: 'echo', input: { data: Buffer.from('hello') } }

/** Predictions, as a promise. */
export function predictWith(
  grpc: RunningGrpc,
  request: object,
  ...options: unknown[]
): Promise<{ prediction: Buffer }> {
  return call(grpc.inference, grpc.inference.Predictions, request as typeof REQUEST, ...options)
}

export function streamWith(
  grpc: RunningGrpc,
  request: object,
  ...options: unknown[]
): GrpcStream<{ prediction: Buffer }> {
  return grpc.inference.StreamPredictions(request as typeof REQUEST, ...options)
}

/** The error that a call fails with. */
export function failure(work: Promise<unknown>): Promise<GrpcError> {
  return work.then(
    () => Promise.reject(new Error('The call did not fail')),
    (error: unknown) => error as GrpcError,
  )
}

export function text(messages: { prediction: Buffer }[]): string[] {
  return messages.map(({ prediction }) => prediction.toString())
}

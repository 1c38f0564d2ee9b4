import { randomUUID } from 'node:crypto'
import type { Asked, AskOptions, Dialect } from '../contract/dialect.ts'
import { CHAT_FORMS, FORMS } from '../contract/dialects/forms.ts'
import {
  MLSERVER_INFER,
  MLSERVER_STREAM,
  PREDICTIONS,
  STREAM_PREDICTIONS,
  STREAM_PREDICTIONS2,
  TORCHSERVE_INFER,
  TRITON_INFER,
  TRITON_STREAM,
} from '../contract/dialects/grpc-forms.ts'
import { GrpcDialect, type GrpcForm } from '../contract/dialects/grpc.ts'
import { HTTP_NOT_FOUND, HttpDialect, type HttpForm } from '../contract/dialects/http.ts'
import type { Server } from './server-process.ts'

/** A dialect that a server speaks on one of its ports. */
export interface PortDialect {
  readonly name: string
  readonly whole: boolean
  /** The status of a model that is not there. */
  readonly notFound: string
  readonly port: keyof Server['ports']
  /** Of the models of {@link pacedModels} those that it asks. */
  readonly models: readonly string[]
  /** A client of it, through any port of this machine that leads there. */
  at(port: number): Dialect
}

const BOTH = ['paced', 'native']

const http = (form: HttpForm, models = BOTH): PortDialect => ({
  name: form.name,
  whole: form.whole === true,
  notFound: HTTP_NOT_FOUND,
  port: 'inference',
  models,
  at: (port) => new HttpDialect(`http://127.0.0.1:${port}`, form),
})

const grpc = (port: keyof Server['ports'], ...forms: GrpcForm[]): PortDialect[] =>
  forms.map((form) => ({
    name: form.name,
    whole: form.whole === true,
    notFound: form.notFound,
    port,
    models: BOTH,
    at: (given) => new GrpcDialect(`127.0.0.1:${given}`, form),
  }))

/** Every dialect of inference, streamed and whole. The server needs {@link ALL_DIALECTS}. */
export const DIALECTS: readonly PortDialect[] = [
  ...FORMS.map((form) => http(form)),
  ...CHAT_FORMS.map((form) => http(form, ['chat'])),
  ...grpc('grpcInference', STREAM_PREDICTIONS, STREAM_PREDICTIONS2, PREDICTIONS, TORCHSERVE_INFER),
  ...grpc('openInference', MLSERVER_STREAM, MLSERVER_INFER),
  ...grpc('triton', TRITON_STREAM, TRITON_INFER),
]

export const ALL_DIALECTS = {
  ts_open_inference_protocol: true,
  open_inference_grpc_port: 0,
  triton_grpc_port: 0,
}

export type Case = [name: string, model: string, dialect: PortDialect]

/** Every dialect with each of its models, as rows of a test. */
export const CASES: readonly Case[] = DIALECTS.flatMap((dialect) =>
  dialect.models.map((model): Case => [dialect.name, model, dialect]),
)

/** Asks a model of {@link pacedModels} for a run (pace.ts), with a client of its own. */
export async function ask(
  server: Server,
  dialect: PortDialect,
  model: string,
  plan: object,
  options?: AskOptions,
): Promise<Asked & { id: string }> {
  const client = dialect.at(server.ports[dialect.port])
  const id = randomUUID()
  const asked = await client
    .ask(model, JSON.stringify({ id, ...plan }), options)
    .finally(() => client.close())
  return { ...asked, id }
}

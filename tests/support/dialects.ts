import type { Dialect } from '../contract/dialect.ts'
import { FORMS } from '../contract/dialects/forms.ts'
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
import { HttpDialect } from '../contract/dialects/http.ts'
import type { Server } from './server.ts'

/** A dialect that a server speaks on one of its ports. */
export interface PortDialect {
  readonly name: string
  readonly whole: boolean
  readonly port: keyof Server['ports']
  /** A client of it, through any port of this machine that leads there. */
  at(port: number): Dialect
}

const http: PortDialect[] = FORMS.map((form) => ({
  name: form.name,
  whole: form.whole === true,
  port: 'inference',
  at: (port) => new HttpDialect(`http://127.0.0.1:${port}`, form),
}))

const grpc = (port: keyof Server['ports'], ...forms: GrpcForm[]): PortDialect[] =>
  forms.map((form) => ({
    name: form.name,
    whole: form.whole === true,
    port,
    at: (given) => new GrpcDialect(`127.0.0.1:${given}`, form),
  }))

/** Every dialect of inference, streamed and whole. The server needs {@link ALL_DIALECTS}. */
export const DIALECTS: readonly PortDialect[] = [
  ...http,
  ...grpc('grpcInference', STREAM_PREDICTIONS, STREAM_PREDICTIONS2, PREDICTIONS, TORCHSERVE_INFER),
  ...grpc('openInference', MLSERVER_STREAM, MLSERVER_INFER),
  ...grpc('triton', TRITON_STREAM, TRITON_INFER),
]

export const ALL_DIALECTS = {
  ts_open_inference_protocol: true,
  open_inference_grpc_port: 0,
  triton_grpc_port: 0,
}

import { join } from 'node:path'
import type { PredictionsRequest } from './grpc-clients.ts'
import { rawRequest } from './raw-http.ts'
import { REPOSITORY, type Server } from './server.ts'

export const COUNT = `count=${join(REPOSITORY, 'model-store', 'count')}`
export const ECHO = `echo=${join(REPOSITORY, 'model-store', 'echo')}`

/** What the count model is asked for: see model-store/count/parameters.ts. */
export interface CountRun {
  id: string
  n?: number
  size?: number
  delay?: number
  gated?: boolean
  stream?: boolean
}

export interface Produced {
  state: 'unknown' | 'running' | 'finished' | 'cancelled' | 'failed'
  items: number
  bytes: number
  lastItemAt?: number
  endedAt?: number
}

/** A run as the options of a REST request. */
export function countBody(run: CountRun): { headers: Record<string, string>; body: string } {
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(run) }
}

/** A run as a gRPC request. */
export function countInput(run: CountRun): PredictionsRequest {
  return { model_name: 'count', input: { data: Buffer.from(JSON.stringify(run)) } }
}

/** How far a run is: asked in a request of its own. @param model the count model, under whatever name */
export function produced(server: Server, id: string, model?: string): Promise<Produced> {
  return query(server, { query: 'produced', id }, model)
}

/** Asks a gated run for its next item, in a request of its own. */
export function next(server: Server, id: string, model?: string): Promise<Produced> {
  return query(server, { query: 'next', id }, model)
}

async function query(server: Server, asked: object, model = 'count'): Promise<Produced> {
  const { body } = await rawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(asked),
  })
  return JSON.parse(body) as Produced
}

/** Waits until a run has ended. */
export function ended(server: Server, id: string, model?: string): Promise<Produced> {
  return server.until(
    () => produced(server, id, model),
    ({ state }) => state !== 'running' && state !== 'unknown',
  )
}

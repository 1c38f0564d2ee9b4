import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { Job } from '../../jobs/job.ts'
import { inferJob, targetOf, type Target } from './infer-job.ts'
import type { Answer } from './answers.ts'
import { StreamInferSink, UnaryInferSink } from './replies.ts'
import { openInferenceSettings } from './settings.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import { generateJson, generateRequest, isGenerate } from './rest-generate.ts'
import { isRaw, rawRequest, splitBody, wireRequest, type WireRequest } from './rest-request.ts'
import { answerJson, wireAnswer, type WireAnswer } from './rest-response.ts'
import { InferEvents, InferResponse, refuse } from './rest-reply.ts'
import type { InferKind, InferRoute } from './rest-route.ts'

/**
 * Handles the four inference routes. The request has been admitted.
 * @throws ServeError METHOD_NOT_ALLOWED, and the errors of targetOf
 */
export function infer(exchange: Exchange, route: InferRoute): void {
  const { models, req, reply } = exchange
  if (req.method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
  const target = targetOf(models, route.model, route.version)
  readDecoded(exchange, (error, body) => {
    try {
      if (error !== undefined) throw error
      submit(exchange, route, target, read(exchange, body, route.kind, target))
    } catch (thrown) {
      refuse(reply, ServeError.from(thrown))
    }
  })
}

interface ReadRequest extends WireRequest {
  /** The request uses the generate extension, so the response does too. */
  readonly generate: boolean
}

function read({ req, state }: Exchange, body: Buffer, kind: InferKind, { status }: Target): ReadRequest {
  const header = req.headers['inference-header-content-length']
  const length = Array.isArray(header) ? header[0] : header
  if (isRaw(length)) return { ...rawRequest(body, openInferenceSettings(status).inputs), generate: false }
  const parts = splitBody(body, length, state.settings.maxRequestElements)
  const generate = kind.startsWith('generate') && isGenerate(parts.value)
  if (!generate) return { ...wireRequest(parts), generate }
  const { inputs } = openInferenceSettings(status)
  return { infer: generateRequest(parts.value, inputs), isBinary: () => false, generate }
}

function submit(
  { state, models, req, reply, requestId }: Exchange,
  { kind, version }: InferRoute,
  target: Target,
  { infer: request, isBinary, generate }: ReadRequest,
): void {
  const stream = kind === 'infer_stream' || kind === 'generate_stream'
  const { name: modelName, version: modelVersion } = target.status
  const facts = { id: request.id ?? requestId, modelName, modelVersion }
  const encode = (answer: Answer): WireAnswer =>
    generate ? jsonAnswer(generateJson(answer)) : wireAnswer(answer, isBinary)
  const maxBytes = state.settings.maxRequestSize
  const call = { requestId, modelVersion: version, ...clientHeaders(req), stream, maxBytes }
  const { request: asked, reader } = inferJob(target, request, call, facts)
  const sink = stream
    ? new StreamInferSink(reader, new InferEvents(reply, generate ? generateJson : answerJson, facts))
    : new UnaryInferSink(
        reader,
        new InferResponse(reply, encode, state.settings.openInferenceGzip && takesGzip(req)),
        state.settings.maxResponseSize,
      )
  const job = new Job(asked, sink)
  sink.job = job
  if (!reply.follow(job)) return
  try {
    models.submit(job)
  } catch (thrown) {
    sink.fail(ServeError.from(thrown))
  }
}

function jsonAnswer(json: string): WireAnswer {
  return { contentType: 'application/json', body: Buffer.from(json), headers: [] }
}

/** Whether the client accepts gzip; a weight of 0 excludes it. */
function takesGzip({ headers }: IncomingMessage): boolean {
  const accepted = headers['accept-encoding']
  return accepted !== undefined && /(^|[\s,])(gzip|\*)(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted)
}

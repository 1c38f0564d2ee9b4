import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import { Job } from '../../jobs/job.ts'
import { answersAs } from './answer-form.ts'
import { jobRequest, targetOf, type Target } from './infer-job.ts'
import { StreamInferSink, UnaryInferSink } from './replies.ts'
import { generateJson } from './rest-generate.ts'
import { type RequestRead, type RequestTask, readRequest } from './rest-read.ts'
import { InferEvents, InferResponse, refuse } from './rest-reply.ts'
import { answerJson, wireAnswer } from './rest-response.ts'
import type { InferKind, InferRoute } from './rest-route.ts'

/**
 * Handles the four inference routes. The request has been admitted.
 * @throws ServeError METHOD_NOT_ALLOWED, MODEL_NOT_FOUND, VERSION_NOT_FOUND, and the errors of targetOf
 */
export function infer(exchange: Exchange, route: InferRoute): void {
  const { req, reply } = exchange
  if (req.method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
  const target = targetOf(exchange.route(route.model, route.version))
  readDecoded(exchange, (error, body) => {
    try {
      if (error !== undefined) throw error
      submit(exchange, route, target, readRequest(requestTask(exchange, route.kind, target, body)))
    } catch (thrown) {
      refuse(reply, forSeldon(exchange, ServeError.from(thrown)))
    }
  })
}

/** With a 400, Seldon's proxy would load the model again and repeat the request; it sends this header. */
function forSeldon({ req }: Exchange, error: ServeError): ServeError {
  const isSeldon = error.code === 'TENSOR_MISMATCH' && req.headers['seldon-internal-model'] !== undefined
  return isSeldon ? new ServeError('INVALID_TENSOR', error.message) : error
}

function requestTask(
  { req, state, requestId }: Exchange,
  kind: InferKind,
  target: Target,
  body: Buffer,
): RequestTask {
  const header = req.headers['inference-header-content-length']
  const { name, version } = target.status
  const { maxRequestElements: maxElements, maxRequestSize: maxBytes } = state.settings
  return {
    body,
    length: Array.isArray(header) ? header[0] : header,
    mayGenerate: kind.startsWith('generate'),
    target,
    stream: isStream(kind),
    facts: { id: requestId, modelName: name, modelVersion: version },
    maxElements,
    maxBytes,
  }
}

function isStream(kind: InferKind): boolean {
  return kind === 'infer_stream' || kind === 'generate_stream'
}

function submit(
  exchange: Exchange,
  { kind, version }: InferRoute,
  target: Target,
  { input, form }: RequestRead,
): void {
  const { state, models, req, reply, requestId } = exchange
  const { answers } = input
  const call = {
    requestId,
    dialect: 'open-inference',
    sender: exchange,
    modelVersion: version,
    ...clientHeaders(req),
  }
  const gzip = state.settings.openInferenceGzip && takesGzip(req)
  const sink = isStream(kind)
    ? new StreamInferSink(
        answersAs(answers, form === 'generate' ? generateJson : answerJson),
        new InferEvents(reply, answers.facts),
      )
    : new UnaryInferSink(
        answersAs(answers, (answer) => wireAnswer(answer, form)),
        new InferResponse(reply, gzip),
        state.settings.maxResponseSize,
      )
  const job = new Job(jobRequest(target, call, input), sink)
  sink.job = job
  if (!reply.follow(job)) return
  try {
    models.submit(job)
  } catch (thrown) {
    sink.fail(ServeError.from(thrown))
  }
}

/** Whether the client accepts gzip; a weight of 0 excludes it. */
function takesGzip({ headers }: IncomingMessage): boolean {
  const accepted = headers['accept-encoding']
  return accepted !== undefined && /(^|[\s,])(gzip|\*)(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted)
}

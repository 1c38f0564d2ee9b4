import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { readDecoded } from '../../edge/http/decoded-body.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import { clientHeaders } from '../../edge/http/request-headers.ts'
import { Job } from '../../jobs/job.ts'
import { answersAs } from './answer-form.ts'
import { checkNesting, inputCheck } from './declared-inputs.ts'
import { handlerInput, jobRequest, targetOf, type Target } from './infer-job.ts'
import { StreamInferSink, unaryReply } from './replies.ts'
import { generateJson, generateRequest, isGenerate } from './rest-generate.ts'
import { InferEvents, InferResponse, refuse } from './rest-reply.ts'
import { isRaw, rawRequest, splitBody, wireRequest, type WireRequest } from './rest-request.ts'
import { answerJson, wireAnswer } from './rest-response.ts'
import type { InferKind, InferRoute } from './rest-route.ts'
import { openInferenceSettings } from './settings.ts'

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
      submit(exchange, route, target, body)
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

function submit(exchange: Exchange, { kind, version }: InferRoute, target: Target, body: Buffer): void {
  const { state, models, req, reply, requestId } = exchange
  const { maxRequestElements: maxElements, maxRequestSize: maxBytes, openInferenceGzip } = state.settings
  const { name, version: modelVersion } = target.status
  const stream = kind === 'infer_stream' || kind === 'generate_stream'
  const { infer, form } = readRequest(exchange, kind, target, body)
  const facts = { id: infer.id ?? requestId, modelName: name, modelVersion }
  // With the generate extension, the server makes the tensors from the metadata.
  const check = form === 'generate' ? undefined : inputCheck(target.status)
  const input = handlerInput(target, infer, { facts, stream, maxBytes, maxElements, check })
  const { answers } = input
  const sink = stream
    ? new StreamInferSink(
        answersAs(answers, form === 'generate' ? generateJson : answerJson),
        new InferEvents(reply, answers.facts),
      )
    : unaryReply(
        answersAs(answers, (answer) => wireAnswer(answer, form)),
        new InferResponse(reply, openInferenceGzip && takesGzip(req)),
        state.settings.maxResponseSize,
      )
  const known = { requestId, dialect: 'open-inference', sender: exchange, modelVersion: version }
  const job = new Job(jobRequest(target, { ...known, ...clientHeaders(req) }, input), sink)
  sink.job = job
  if (!reply.follow(job)) return
  try {
    models.submit(job)
  } catch (thrown) {
    sink.fail(ServeError.from(thrown))
  }
}

/** @throws ServeError INVALID_ARGUMENT, MALFORMED_BODY, INVALID_TENSOR, TENSOR_MISMATCH */
function readRequest(
  { req, state }: Exchange,
  kind: InferKind,
  { status }: Target,
  body: Buffer,
): WireRequest {
  const header = req.headers['inference-header-content-length']
  const length = Array.isArray(header) ? header[0] : header
  if (isRaw(length)) return rawRequest(body, openInferenceSettings(status).inputs)
  const parts = splitBody(body, length, state.settings.maxRequestElements)
  if (kind.startsWith('generate') && isGenerate(parts.value))
    return { infer: generateRequest(parts.value, openInferenceSettings(status).inputs), form: 'generate' }
  const read = wireRequest(parts)
  if (inputCheck(status) !== undefined) checkNesting(parts.value['inputs'])
  return read
}

/** Whether the client accepts gzip; a weight of 0 excludes it. */
function takesGzip({ headers }: IncomingMessage): boolean {
  const accepted = headers['accept-encoding']
  return accepted !== undefined && /(^|[\s,])(gzip|\*)(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(accepted)
}

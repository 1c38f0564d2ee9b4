import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { readDecoded } from '../../edge/http/body.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { answersAs } from './answer-form.ts'
import { checkNesting, inputCheck } from './declared-inputs.ts'
import { handlerInput, type Target, targetOf } from './infer-job.ts'
import { StreamInferSink, unaryReply } from './replies.ts'
import { generateJson, generateRequest, isGenerate } from './rest-generate.ts'
import { InferEvents, InferResponse } from './rest-reply.ts'
import {
  answerJson,
  isRaw,
  rawRequest,
  splitBody,
  wireAnswer,
  wireRequest,
  type WireRequest,
} from './rest-wire.ts'
import type { InferKind, InferRoute } from './rest-route.ts'
import { openInferenceSettings } from './settings.ts'

/**
 * Handles the four inference routes. The request has been admitted.
 * @throws ServeError METHOD_NOT_ALLOWED, MODEL_NOT_FOUND, VERSION_NOT_FOUND, and the errors of targetOf
 */
export function infer(call: HttpCall, route: InferRoute): void {
  if (call.req.method !== 'POST') throw new ServeError('METHOD_NOT_ALLOWED', 'Method Not Allowed')
  const target = targetOf(call.routeTo(route.model, route.version))
  readDecoded(call, (body) => submit(call, route, target, body))
}

function submit(call: HttpCall, { kind, version }: InferRoute, target: Target, body: Buffer): void {
  const { state, req, requestId } = call
  const { maxRequestElements: maxElements, maxRequestSize: maxBytes, openInferenceGzip } = state.settings
  const { name, version: modelVersion } = target.status
  const stream = kind === 'infer_stream' || kind === 'generate_stream'
  const { infer, form } = readRequest(call, kind, target, body)
  const facts = { id: infer.id ?? requestId, modelName: name, modelVersion }
  // With the generate extension, the server makes the tensors from the metadata.
  const check = form === 'generate' ? undefined : inputCheck(target.status)
  const input = handlerInput(target, infer, { facts, stream, maxBytes, maxElements, check })
  const { answers } = input
  const sink = stream
    ? new StreamInferSink(
        answersAs(answers, form === 'generate' ? generateJson : answerJson),
        new InferEvents(call, answers.facts),
      )
    : unaryReply(
        answersAs(answers, (answer) => wireAnswer(answer, form)),
        new InferResponse(call, openInferenceGzip && takesGzip(req)),
        state.settings.maxResponseSize,
      )
  const { method, parts, alone } = input
  const job = call.job({ modelName: name, modelVersion: version, method, parts, alone }, sink)
  if (call.reply.follow(job)) call.models.submit(job)
}

/** @throws ServeError INVALID_ARGUMENT, MALFORMED_BODY, INVALID_TENSOR, TENSOR_MISMATCH */
function readRequest(
  { req, state }: HttpCall,
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

import type { AnswerFacts } from './answers.ts'
import { checkNesting, inputCheck } from './declared-inputs.ts'
import { handlerInput, type HandlerInput, type Target } from './infer-job.ts'
import { generateRequest, isGenerate } from './rest-generate.ts'
import { isRaw, rawRequest, splitBody, wireRequest, type WireRequest } from './rest-request.ts'
import type { WireForm } from './rest-response.ts'
import { openInferenceSettings } from './settings.ts'

/** A body over REST, and all that its reading depends on. */
export interface RequestTask {
  readonly body: Buffer
  /** The header Inference-Header-Content-Length. */
  readonly length: string | undefined
  /** A path of the generate extension, whose bodies may use it. */
  readonly mayGenerate: boolean
  readonly target: Pick<Target, 'status' | 'native'>
  readonly stream: boolean
  /** Defaults; the request's own id comes first. */
  readonly facts: AnswerFacts
  /** max_request_elements */
  readonly maxElements: number
  /** max_request_size */
  readonly maxBytes: number
}

/** A request as the handler gets it, and how its responses are written. */
export interface RequestRead {
  readonly input: HandlerInput
  readonly form: WireForm
}

/**
 * Reads a request.
 * @throws ServeError INVALID_ARGUMENT, MALFORMED_BODY, INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE
 */
export function readRequest(task: RequestTask): RequestRead {
  const { target, stream, maxBytes, maxElements } = task
  const declared = inputCheck(target.status)
  const { infer, form } = inferOf(task, declared !== undefined)
  // With the generate extension, the server makes the tensors from the metadata.
  const check = form === 'generate' ? undefined : declared
  const { id, modelName, modelVersion } = task.facts
  const facts = { id: infer.id ?? id, modelName, modelVersion }
  return { input: handlerInput(target, infer, { facts, stream, maxBytes, maxElements, check }), form }
}

function inferOf(task: RequestTask, isChecked: boolean): { infer: WireRequest['infer']; form: WireForm } {
  const { body, length, target, maxElements } = task
  if (isRaw(length)) return tensorsOf(rawRequest(body, openInferenceSettings(target.status).inputs))
  const parts = splitBody(body, length, maxElements)
  if (!task.mayGenerate || !isGenerate(parts.value)) {
    const read = tensorsOf(wireRequest(parts))
    if (isChecked) checkNesting(parts.value['inputs'])
    return read
  }
  const { inputs } = openInferenceSettings(target.status)
  return { infer: generateRequest(parts.value, inputs), form: 'generate' }
}

function tensorsOf({ infer, binary }: WireRequest): { infer: WireRequest['infer']; form: WireForm } {
  return { infer, form: binary }
}

import { randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { isModelReady, isServerReady } from '../../models/readiness.ts'
import { takesTensors } from './infer-job.ts'
import { modelMetadata, serverFacts } from './metadata.ts'
import { admit } from '../../edge/http/admit.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { SseReply } from '../../edge/http/sse.ts'
import { infer } from './rest-infer.ts'
import { refuse, tell, type Told } from './rest-reply.ts'
import { index, load, unload } from './rest-repository.ts'
import { openInferenceRoute, type OpenInferenceRoute } from './rest-route.ts'

/**
 * Answers the paths of the Open Inference Protocol (spec 1.1). False: it is none of them, and nothing was done. The path `infer`
 * without a version is TorchServe's too: it means the protocol's with ts_open_inference_protocol, and for a model whose handler speaks
 * more than TorchServe's `handle`.
 */
export function handleOpenInference(
  state: RestState,
  res: ServerResponse,
  segments: readonly string[],
): boolean {
  const route = openInferenceRoute(segments)
  if (route === undefined || isTorchServes(state, route)) return false
  const reply = new SseReply(state, res, randomUUID())
  try {
    answer(state, res, reply, route)
  } catch (thrown) {
    refuse(reply, ServeError.from(thrown))
  }
  return true
}

function isTorchServes({ settings, models }: RestState, route: OpenInferenceRoute): boolean {
  if (route.kind !== 'infer' || route.version !== undefined || settings.openInferenceProtocol) return false
  try {
    return !takesTensors(models.status(route.model))
  } catch {
    return false // for an unknown model there is one answer that both kinds of clients read
  }
}

function answer(state: RestState, res: ServerResponse, reply: SseReply, route: OpenInferenceRoute): void {
  const { req } = res
  const manages = route.kind === 'load' || route.kind === 'unload'
  admit(state, req, manages ? 'management' : 'inference')
  switch (route.kind) {
    case 'infer':
    case 'infer_stream':
    case 'generate':
    case 'generate_stream':
      infer(state, res, reply, route)
      return
    case 'index':
      index(state, res, reply)
      return
    case 'load':
    case 'unload':
      tell(reply, (route.kind === 'load' ? load : unload)(state, req, route.model))
      return
    default:
      tell(reply, told(state, route))
  }
}

/** What the server and its models are. Any method, as in TorchServe. */
async function told({ models }: RestState, route: OpenInferenceRoute): Promise<Told> {
  switch (route.kind) {
    case 'live':
      return [200, { live: true }]
    case 'ready': {
      const ready = await isServerReady(models)
      return [ready ? 200 : 503, { ready, live: true }]
    }
    case 'models':
      return [200, { models: models.statuses().map(({ name }) => name) }]
    case 'model':
      return [200, await modelMetadata(models, route.model, route.version)]
    case 'model ready': {
      const ready = await isModelReady(models, route.model, route.version)
      return [ready ? 200 : 503, { name: route.model, ready }]
    }
    default: {
      const facts = serverFacts()
      // The misspelt key is TorchServe's [quirk], and so is what stands there.
      return [200, { ...facts, extenstion: facts.extensions.slice(0, 2) }]
    }
  }
}

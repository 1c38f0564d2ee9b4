import { FORMS } from '../../contract/dialects/forms.ts'
import {
  PREDICTIONS,
  STREAM_PREDICTIONS,
  STREAM_PREDICTIONS2,
  TORCHSERVE_INFER,
} from '../../contract/dialects/grpc-forms.ts'
import { GrpcDialect } from '../../contract/dialects/grpc.ts'
import { HTTP_NOT_FOUND, HttpDialect, type HttpForm } from '../../contract/dialects/http.ts'
import { DIALECTS, type PortDialect } from '../../support/port-dialects.ts'
import { PYTHON, WORKFLOW } from '../models.ts'

/** Those in which a handler in Python gets the plan as it is. */
const TORCHSERVE_NAMES: readonly string[] = [
  'TorchServe /predictions',
  'TorchServe /predictions whole',
  ...[STREAM_PREDICTIONS, STREAM_PREDICTIONS2, PREDICTIONS].map(({ name }) => name),
]

/** Every dialect of models with the kinds of models that it asks, and the ones of workflows. */
export const SOAK_DIALECTS: readonly PortDialect[] = [
  ...DIALECTS.map((dialect) => ({ ...dialect, models: kindsOf(dialect) })),
  ...FORMS.filter(({ name }) => TORCHSERVE_NAMES.includes(name)).map(workflowOverHttp),
  ...[STREAM_PREDICTIONS, PREDICTIONS].map((form): PortDialect => {
    const { name, whole, notFound } = form
    const at = (port: number): GrpcDialect => new GrpcDialect(`127.0.0.1:${port}`, form)
    return {
      name: `workflow, ${name}`,
      whole: whole === true,
      notFound,
      port: 'grpcInference',
      models: [WORKFLOW],
      at,
    }
  }),
]

/** The row of the report. */
export function rowOf({ name }: PortDialect, kind: string): string {
  return kind === 'python' ? `Python, ${name}` : name
}

function kindsOf({ name, models }: PortDialect): readonly string[] {
  // TorchServe's own service of V2 wants JSON of a handler that has only `handle`.
  if (name === TORCHSERVE_INFER.name) return models.filter((kind) => kind !== 'paced')
  return PYTHON !== undefined && TORCHSERVE_NAMES.includes(name) ? [...models, 'python'] : models
}

function workflowOverHttp(given: HttpForm): PortDialect {
  const form = { ...given, path: (name: string) => `/wfpredict/${name}` }
  return {
    name: `workflow, ${form.name.replace('/predictions', '/wfpredict')}`,
    whole: form.whole === true,
    notFound: HTTP_NOT_FOUND,
    port: 'inference',
    models: [WORKFLOW],
    at: (port) => new HttpDialect(`http://127.0.0.1:${port}`, form),
  }
}

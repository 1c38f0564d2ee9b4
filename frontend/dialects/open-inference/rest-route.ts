import { PathTable } from '../path-table.ts'
import type { RestPath } from '../rest-dialect.ts'

const INFER_KINDS = ['infer', 'infer_stream', 'generate', 'generate_stream'] as const
export type InferKind = (typeof INFER_KINDS)[number]

/** The operation of an Open Inference Protocol path. */
export interface OpenInferenceRoute<
  Kind =
    | 'live'
    | 'ready'
    | 'server'
    | 'models'
    | 'index'
    | 'load'
    | 'unload'
    | 'model'
    | 'model ready'
    | InferKind,
> {
  readonly kind: Kind
  /** Empty where the path names none. */
  readonly model: string
  /** Absent: the default version. */
  readonly version?: string
}

export type InferRoute = OpenInferenceRoute<InferKind>
type Route = readonly [method: string, path: string, kind: OpenInferenceRoute['kind']]

const MODEL = '/v2/models/{model_name}'

const ROUTES: readonly Route[] = [
  ['*', '/v2', 'server'],
  ['*', '/v2/health/live', 'live'],
  ['*', '/v2/health/ready', 'ready'],
  ['*', '/v2/models', 'models'],
  ...[MODEL, `${MODEL}/versions/{model_version}`].flatMap((path): Route[] => [
    ['*', path, 'model'],
    ['*', `${path}/ready`, 'model ready'],
    ...INFER_KINDS.map((kind): Route => ['POST', `${path}/${kind}`, kind]),
  ]),
  ['*', '/v2/repository/index', 'index'],
  ['POST', '/v2/repository/models/{model_name}/load', 'load'],
  ['POST', '/v2/repository/models/{model_name}/unload', 'unload'],
]

/** As in Triton, the name of a repository may stand before what is asked of it. */
const TABLE = new PathTable(
  ROUTES.flatMap(([, path, kind]) =>
    [path, path.replace('/repository/', '/repository/{repository}/')].map((each) => [each, kind] as const),
  ),
)

/** The route of a path; undefined if the protocol does not have the path. */
export function openInferenceRoute(segments: readonly string[]): OpenInferenceRoute | undefined {
  if (segments[0] !== 'v2') return undefined
  const found = TABLE.find(segments)
  if (found?.isWhole !== true || found.names.includes('')) return undefined
  const { value: kind, names } = found
  if (kind === 'load' || kind === 'unload') return { kind, model: names.at(-1)! }
  return { kind, model: names[0] ?? '', version: names[1] }
}

export function openInferencePaths(): RestPath[] {
  return ROUTES.map(([method, path, kind]) => {
    return { method, path, token: kind === 'load' || kind === 'unload' ? 'management' : 'inference' }
  })
}

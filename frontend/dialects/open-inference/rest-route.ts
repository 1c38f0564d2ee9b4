/** The operation of an Open Inference Protocol path. */
export type OpenInferenceRoute =
  | { readonly kind: 'live' | 'ready' | 'server' | 'models' | 'index' }
  | { readonly kind: 'load' | 'unload'; readonly model: string }
  | VersionRoute<'model' | 'model ready'>
  | InferRoute

export type InferRoute = VersionRoute<InferKind>

interface VersionRoute<Kind extends string> {
  readonly kind: Kind
  readonly model: string
  /** Absent: the default version. */
  readonly version?: string
}

export type InferKind = 'infer' | 'infer_stream' | 'generate' | 'generate_stream'

const INFER_KINDS: ReadonlySet<string> = new Set(['infer', 'infer_stream', 'generate', 'generate_stream'])

/** The route of a path whose first segment is `v2`; undefined if the protocol does not have the path. */
export function openInferenceRoute(segments: readonly string[]): OpenInferenceRoute | undefined {
  const [, area, ...rest] = segments
  switch (area) {
    case undefined:
      return { kind: 'server' }
    case 'health':
      return rest.length === 1 && (rest[0] === 'live' || rest[0] === 'ready') ? { kind: rest[0] } : undefined
    case 'models':
      return modelRoute(rest)
    case 'repository':
      return repositoryRoute(rest)
    default:
      return undefined
  }
}

/** `{m}[/versions/{v}][/{what}]` */
function modelRoute([model, ...rest]: readonly string[]): OpenInferenceRoute | undefined {
  if (model === undefined) return { kind: 'models' }
  const versioned = rest[0] === 'versions' && rest[1] !== undefined
  const [what, ...more] = versioned ? rest.slice(2) : rest
  const named = versioned ? { model, version: rest[1] } : { model }
  if (model === '' || more.length > 0) return undefined
  if (what === undefined) return { kind: 'model', ...named }
  if (what === 'ready') return { kind: 'model ready', ...named }
  return INFER_KINDS.has(what) ? { kind: what as InferKind, ...named } : undefined
}

/** `index` and `models/{m}/load`, optionally after a repository name, as in Triton. */
function repositoryRoute(rest: readonly string[]): OpenInferenceRoute | undefined {
  const [area, model, what, ...more] = rest[0] === 'index' || rest[0] === 'models' ? rest : rest.slice(1)
  if (area === 'index') return model === undefined ? { kind: 'index' } : undefined
  if (area !== 'models' || !model || more.length > 0) return undefined
  return what === 'load' || what === 'unload' ? { kind: what, model } : undefined
}

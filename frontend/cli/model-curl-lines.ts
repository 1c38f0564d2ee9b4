import { type CurlLine, curlLines, type DeclaredTensor } from '../../common/curl-lines.ts'
import { hasTensorMethod, type ListedMethod } from '../../common/handler-methods.ts'

/** The command lines for a model of a running server, whose metadata says what its tensors are. */
export async function modelCurlLines(
  name: string,
  methods: readonly ListedMethod[] = [],
  base: string,
): Promise<CurlLine[]> {
  const url = `${base}/v2/models/${encodeURIComponent(name)}`
  const inputs = hasTensorMethod(methods) ? await declaredInputs(url) : []
  return curlLines({ name, methods, inputs }, base)
}

async function declaredInputs(url: string): Promise<readonly DeclaredTensor[]> {
  const response = await fetch(url).catch(() => undefined)
  if (response?.ok !== true) return []
  return ((await response.json()) as { inputs?: DeclaredTensor[] }).inputs ?? []
}

import { type CurlLine, curlLines, type DeclaredTensor } from '../../common/curl-lines.ts'
import { hasTensorMethod, type ListedMethod } from '../../common/handler-methods.ts'

/**
 * The command lines for a model of a running server, whose metadata says what its tensors are.
 * @param key that clients must send; undefined: none
 */
export async function modelCurlLines(
  name: string,
  methods: readonly ListedMethod[] = [],
  base: string,
  key?: string,
): Promise<CurlLine[]> {
  const url = `${base}/v2/models/${encodeURIComponent(name)}`
  const inputs = hasTensorMethod(methods) ? await declaredInputs(url, key) : []
  const lines = curlLines({ name, methods, inputs }, base)
  if (key === undefined) return lines
  const header = `-H 'authorization: Bearer ${key.replaceAll("'", "'\\''")}'`
  return lines.map(({ api, line }) => ({ api, line: line.replace('curl ', () => `curl ${header} `) }))
}

async function declaredInputs(url: string, key: string | undefined): Promise<readonly DeclaredTensor[]> {
  const response = await fetch(url, {
    headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
  }).catch(() => undefined)
  if (response?.ok !== true) return []
  return ((await response.json()) as { inputs?: DeclaredTensor[] }).inputs ?? []
}

import { exactJson, tryParseJson } from '../../common/exact-json.ts'

/**
 * The answer of a workflow with several leaves: a JSON object with each leaf's output under its name. Output
 * that is not JSON becomes a string. TorchServe accepts only JSON objects.
 */
export function joinLeaves(leaves: readonly string[], outputs: ReadonlyMap<string, Uint8Array>): Buffer {
  const fields = leaves.map((leaf) => [leaf, jsonOrText(outputs.get(leaf)!)])
  return Buffer.from(`${exactJson(Object.fromEntries(fields), 2)}\n`)
}

function jsonOrText(output: Uint8Array): unknown {
  const value = tryParseJson(output)
  return value === undefined ? Buffer.from(output).toString() : value
}

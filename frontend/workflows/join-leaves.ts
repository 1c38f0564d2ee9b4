/**
 * The answer of a workflow with several leaves: a JSON object with each leaf's output under its name. Output
 * that is not JSON becomes a string. TorchServe accepts only JSON objects.
 */
export function joinLeaves(leaves: readonly string[], outputs: ReadonlyMap<string, Uint8Array>): Buffer {
  const fields = leaves.map((leaf) => [leaf, jsonOrText(Buffer.from(outputs.get(leaf)!).toString())])
  return Buffer.from(`${JSON.stringify(Object.fromEntries(fields), null, 2)}\n`)
}

function jsonOrText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

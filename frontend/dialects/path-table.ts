/** One segment of the paths that begin alike. */
class Node<Value> {
  readonly below = new Map<string, Node<Value>>()
  /** What follows any name. */
  any: Node<Value> | undefined
  /** Of the path that ends here; undefined: none does. */
  value: Value | undefined
}

interface Found<Value> {
  readonly value: Value
  /** The segments in the places of names. */
  readonly names: readonly string[]
  readonly isWhole: boolean
}

/** Values by path templates, such as `/models/{model_name}`. */
export class PathTable<Value> {
  readonly #root = new Node<Value>()

  /** The first of several values for a path counts. */
  constructor(entries: Iterable<readonly [path: string, value: Value]>) {
    for (const [path, value] of entries) this.#nodeFor(path).value ??= value
  }

  /** The path with a value, or the longest beginning of it that has one. Undefined: there is none. */
  find(segments: readonly string[]): Found<Value> | undefined {
    const names: string[] = []
    let node: Node<Value> | undefined = this.#root
    let found: Found<Value> | undefined
    for (const [at, segment] of segments.entries()) {
      const next: Node<Value> | undefined = node.below.get(segment)
      if (next === undefined) names.push(segment)
      node = next ?? node.any
      if (node === undefined) break
      if (node.value !== undefined)
        found = { value: node.value, names: [...names], isWhole: at + 1 === segments.length }
    }
    return found
  }

  #nodeFor(path: string): Node<Value> {
    let node = this.#root
    for (const segment of path.split('/').filter((each) => each !== '')) {
      if (segment.startsWith('{')) node = node.any ??= new Node()
      else {
        let next = node.below.get(segment)
        if (next === undefined) node.below.set(segment, (next = new Node()))
        node = next
      }
    }
    return node
  }
}

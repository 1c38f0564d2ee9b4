import type { RestPath } from './rest-dialect.ts'

/** One segment of the paths that begin alike. */
class Node {
  readonly below = new Map<string, Node>()
  /** What follows any name. */
  any: Node | undefined
  /** The path that ends here; undefined: none does. */
  path: string | undefined
}

/** Finds the path template of a request, such as `/models/{model_name}`: there are few different ones. */
export class RouteNames {
  readonly #root = new Node()

  constructor(paths: Iterable<Pick<RestPath, 'path'>>) {
    for (const { path } of paths) this.#add(path)
  }

  /** The template of a path, or of the longest beginning of it that has one; undefined: it has none. */
  of(segments: readonly string[]): string | undefined {
    let node: Node | undefined = this.#root
    let found: string | undefined
    for (const segment of segments) {
      node = node.below.get(segment) ?? node.any
      if (node === undefined) break
      found = node.path ?? found
    }
    return found
  }

  #add(path: string): void {
    let node = this.#root
    for (const segment of path.split('/').filter((each) => each !== '')) {
      if (segment.startsWith('{')) node = node.any ??= new Node()
      else {
        let next = node.below.get(segment)
        if (next === undefined) node.below.set(segment, (next = new Node()))
        node = next
      }
    }
    node.path ??= path
  }
}

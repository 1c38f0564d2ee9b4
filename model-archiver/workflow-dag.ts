import { ServeError } from '../common/errors.ts'

/** All nodes may run at the same time, so this also bounds the work of one request. */
const MAX_NODES = 64

/**
 * The graph of a workflow: which node's output goes to which nodes. It has one start and no cycle; nodes
 * without successors are leaves.
 */
export class Dag {
  /** All nodes in topological order. */
  readonly order: readonly string[]
  /** The nodes whose outputs form the answer. */
  readonly leaves: readonly string[]
  readonly #successors: ReadonlyMap<string, readonly string[]>
  readonly #predecessors: ReadonlyMap<string, readonly string[]>

  /**
   * @param edges nodes in the order of the specification, each with its successors
   * @throws ServeError INVALID_DAG with TorchServe's message
   */
  constructor(edges: Iterable<readonly [node: string, successors: readonly string[]]>) {
    const { successors, predecessors } = connect(edges)
    this.#successors = successors
    this.#predecessors = predecessors
    const starts = [...successors.keys()].filter((node) => predecessors.get(node)!.length === 0)
    if (starts.length !== 1) throw invalid('DAG should have only one start node')
    this.order = sorted(starts[0]!, successors, predecessors)
    if (this.order.length !== successors.size) throw invalid('Not a valid DAG')
    this.leaves = this.order.filter((node) => successors.get(node)!.length === 0)
  }

  /** The node that receives the request. */
  get start(): string {
    return this.order[0]!
  }

  successors(node: string): readonly string[] {
    return this.#successors.get(node) ?? []
  }

  /** In the order of the specification. */
  predecessors(node: string): readonly string[] {
    return this.#predecessors.get(node) ?? []
  }
}

type Neighbours = Map<string, string[]>

function connect(edges: Iterable<readonly [string, readonly string[]]>): {
  successors: Neighbours
  predecessors: Neighbours
} {
  const successors: Neighbours = new Map()
  const predecessors: Neighbours = new Map()
  const add = (node: string): void => {
    if (successors.has(node)) return
    if (successors.size === MAX_NODES) throw invalid(`A workflow must have at most ${MAX_NODES} nodes`)
    successors.set(node, [])
    predecessors.set(node, [])
  }
  for (const [from, targets] of edges) {
    add(from)
    for (const to of targets) {
      add(to)
      if (from === to) throw invalid('Self loop exception')
      const twice = successors.get(from)!.includes(to)
      if (twice || successors.get(to)!.includes(from)) throw invalid('loop exception')
      successors.get(from)!.push(to)
      predecessors.get(to)!.push(from)
    }
  }
  return { successors, predecessors }
}

/** Topological order of all nodes that do not depend on a cycle. */
function sorted(start: string, successors: Neighbours, predecessors: Neighbours): string[] {
  const missing = new Map([...predecessors].map(([node, before]) => [node, before.length]))
  const order = [start]
  for (const node of order) {
    for (const next of successors.get(node)!) {
      const left = missing.get(next)! - 1
      missing.set(next, left)
      if (left === 0) order.push(next)
    }
  }
  return order
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_DAG', message)
}

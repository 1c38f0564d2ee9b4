import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { Dag } from '../../model-archiver/workflow-dag.ts'

type Edges = [string, string[]][]

const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']

/** Any graph over six names, mostly sparse. */
const graphs: fc.Arbitrary<Edges> = fc
  .uniqueArray(fc.constantFrom(...NAMES), { minLength: 1 })
  .chain((nodes) =>
    fc
      .array(fc.uniqueArray(fc.constantFrom(...NAMES), { maxLength: 3 }), {
        minLength: nodes.length,
        maxLength: nodes.length,
      })
      .map((targets) => nodes.map((node, i): [string, string[]] => [node, targets[i]!])),
  )

/**
 * An acyclic graph with one start, by construction: edges lead upwards, and each node but the first has one.
 */
const dags: fc.Arbitrary<Edges> = fc
  .array(fc.array(fc.nat(), { minLength: 1, maxLength: 3 }), { maxLength: 8 })
  .map((before) => {
    const edges: Edges = [['n0', []], ...before.map((_, i): [string, string[]] => [`n${i + 1}`, []])]
    before.forEach((choices, i) => {
      for (const from of new Set(choices.map((choice) => choice % (i + 1)))) edges[from]![1].push(`n${i + 1}`)
    })
    return edges
  })

function tryDag(edges: Edges): Dag | string {
  try {
    return new Dag(edges)
  } catch (error) {
    expect(error).toMatchObject({ code: 'INVALID_DAG' })
    return (error as Error).message
  }
}

/** Computed without the code under test, by walking every path. */
function oracle(edges: Edges): boolean {
  const next = new Map(edges)
  const nodes = new Set(edges.flatMap(([from, targets]) => [from, ...targets]))
  const reaches = (from: string, goal: string, seen = new Set<string>()): boolean =>
    (next.get(from) ?? []).some(
      (to) => to === goal || (!seen.has(to) && reaches(to, goal, new Set([...seen, to]))),
    )
  const targets = new Set(edges.flatMap(([, to]) => to))
  const starts = [...nodes].filter((node) => !targets.has(node))
  return starts.length === 1 && ![...nodes].some((node) => reaches(node, node))
}

describe('a workflow graph', () => {
  test('is taken exactly when it has one start and no cycle', () => {
    fc.assert(
      fc.property(graphs, (edges) => {
        expect(typeof tryDag(edges) !== 'string').toBe(oracle(edges))
      }),
      { numRuns: 2000 },
    )
  })

  test('orders every node after all nodes before it, and knows start, leaves and neighbours', () => {
    fc.assert(
      fc.property(dags, (edges) => {
        const dag = new Dag(edges)
        expect(new Set(dag.order)).toEqual(new Set(edges.map(([node]) => node)))
        expect(dag.start).toBe('n0')
        expect([...dag.leaves].sort()).toEqual(
          edges
            .filter(([, targets]) => targets.length === 0)
            .map(([node]) => node)
            .sort(),
        )
        for (const [node, targets] of edges) {
          expect(dag.successors(node)).toEqual(targets)
          for (const target of targets) {
            expect(dag.order.indexOf(target)).toBeGreaterThan(dag.order.indexOf(node))
            expect(dag.predecessors(target)).toContain(node)
          }
        }
      }),
    )
  })

  test.each<[string, Edges, string]>([
    ['a self loop', [['a', ['a']]], 'Self loop exception'],
    [
      'two nodes that lead to each other',
      [
        ['a', ['b']],
        ['b', ['a']],
      ],
      'loop exception',
    ],
    ['an edge twice', [['a', ['b', 'b']]], 'loop exception'],
    [
      'two starts',
      [
        ['a', ['c']],
        ['b', ['c']],
      ],
      'DAG should have only one start node',
    ],
    [
      'no start',
      [
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['a']],
      ],
      'DAG should have only one start node',
    ],
    [
      'a cycle behind the start',
      [
        ['s', ['a']],
        ['a', ['b']],
        ['b', ['c']],
        ['c', ['a']],
      ],
      'Not a valid DAG',
    ],
    [
      'too many nodes',
      [['a', Array.from({ length: 64 }, (_, i) => `n${i}`)]],
      'A workflow must have at most 64 nodes',
    ],
  ])('with %s is refused in TorchServe’s words', (_what, edges, message) => {
    expect(tryDag(edges)).toBe(message)
  })
})

import type { Dialect } from './dialect.ts'
import { POINTS, type Models, type Point, type Subject } from './points.ts'

const POINT_LIMIT_MS = 45_000

export interface Counts {
  readonly passed: number
  readonly failed: number
}

/**
 * Prints for each point, in each of its dialects: `holds`, `LACKS` and what was seen instead, or `unasked`
 * and what it needs.
 */
export async function report(
  dialects: readonly Dialect[],
  models: Models,
  print: (line: string) => void,
  points: readonly Point[] = POINTS,
): Promise<Counts> {
  let passed = 0
  let failed = 0
  for (const dialect of dialects) {
    const subject = { ...models, dialect, ...queriesOf(dialect, models) }
    for (const point of points.filter((each) => concerns(each, dialect))) {
      const where = `${dialect.name}: ${point.name}`
      if (point.needs !== undefined && models[point.needs] === undefined) {
        print(`unasked ${where}: needs --${point.needs}`)
        continue
      }
      const lack = await lackOf(point, subject)
      if (lack === undefined) passed += 1
      else failed += 1
      print(lack === undefined ? `holds   ${where}` : `LACKS   ${where}: ${lack}`)
    }
  }
  return { passed, failed }
}

function concerns({ about = 'streams' }: Point, { whole, http }: Dialect): boolean {
  switch (about) {
    case 'all':
      return true
    case 'streams':
      return !whole
    case 'whole answers':
      return whole
    case 'streams over HTTP':
      return !whole && http
  }
}

function queriesOf(dialect: Dialect, { model }: Models): Pick<Subject, 'items' | 'next'> {
  const ask = async (query: 'produced' | 'next', id: string): Promise<number> => {
    const answer = await dialect.ask(model, JSON.stringify({ query, id }))
    const said = answer.items.map(({ text }) => text).join('')
    if (said === '') throw new Error(`the model does not say how far it is: ${JSON.stringify(answer.end)}`)
    return (JSON.parse(said) as { items: number }).items
  }
  return { items: (id) => ask('produced', id), next: (id) => ask('next', id) }
}

async function lackOf(point: Point, subject: Subject): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${POINT_LIMIT_MS} ms`)), POINT_LIMIT_MS)
  })
  try {
    await Promise.race([point.check(subject), late])
    return undefined
  } catch (error) {
    return (error as Error).message
  } finally {
    clearTimeout(timer)
  }
}

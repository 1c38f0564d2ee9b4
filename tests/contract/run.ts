/**
 * Which points of the stream contract a server keeps, in each dialect: `npm run conformance -- --rest URL --grpc HOST:PORT ...`
 * (docs/protocols.md). One line per point; ends with `N passed, N failed`.
 */
import { Command } from 'commander'
import type { Dialect } from './dialect.ts'
import { FORMS } from './dialects/forms.ts'
import { GrpcDialect, MLSERVER_STREAM, STREAM_PREDICTIONS, TRITON_STREAM } from './dialects/grpc.ts'
import { HttpDialect } from './dialects/http.ts'
import { POINTS, type Point, type Subject } from './points.ts'

interface Options {
  rest?: string
  torchserveGrpc?: string
  grpc?: string
  triton?: string
  model: string
  only?: string[]
}

const POINT_LIMIT_MS = 45_000
let passed = 0
let failed = 0

function dialects({ rest, torchserveGrpc, grpc, triton }: Options): Dialect[] {
  const made: Dialect[] = []
  if (rest !== undefined) made.push(...FORMS.map((form) => new HttpDialect(rest.replace(/\/$/, ''), form)))
  if (torchserveGrpc !== undefined) made.push(new GrpcDialect(torchserveGrpc, STREAM_PREDICTIONS))
  if (grpc !== undefined) made.push(new GrpcDialect(grpc, MLSERVER_STREAM))
  if (triton !== undefined) made.push(new GrpcDialect(triton, TRITON_STREAM))
  return made
}

async function check(point: Point, subject: Subject): Promise<void> {
  const { name } = subject.dialect
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done within ${POINT_LIMIT_MS} ms`)), POINT_LIMIT_MS)
  })
  try {
    await Promise.race([point.check(subject), late])
    passed += 1
    console.log(`holds   ${name}: ${point.name}`)
  } catch (error) {
    failed += 1
    console.log(`LACKS   ${name}: ${point.name}: ${(error as Error).message}`)
  } finally {
    clearTimeout(timer)
  }
}

async function main(options: Options): Promise<void> {
  const all = dialects(options)
  if (all.length === 0) throw new Error('Name at least one of --rest, --torchserve-grpc, --grpc, --triton')
  const wanted = all.filter(({ name }) => options.only?.some((word) => name.includes(word)) ?? true)
  for (const dialect of wanted) {
    const items = async (id: string): Promise<number> => {
      const answer = await dialect.stream(options.model, JSON.stringify({ query: 'produced', id }))
      const said = answer.items.map(({ text }) => text).join('')
      if (said === '') throw new Error(`the model does not say how far it is: ${JSON.stringify(answer.end)}`)
      return (JSON.parse(said) as { items: number }).items
    }
    for (const point of POINTS) {
      if (point.httpOnly !== true || dialect.http)
        await check(point, { dialect, model: options.model, items })
    }
  }
  for (const dialect of all) dialect.close()
}

const command = new Command('conformance')
  .description('Prints which points of the stream contract a server keeps, in each dialect.')
  .option('--rest <url>', 'TorchServe, V2 and OpenAI over REST')
  .option('--torchserve-grpc <host:port>', "TorchServe's StreamPredictions")
  .option('--grpc <host:port>', "V2's ModelStreamInfer as MLServer and Seldon have it")
  .option('--triton <host:port>', "V2's ModelStreamInfer as Triton has it")
  .option('--model <name>', 'a model that counts as model-store/count does', 'count')
  .option('--only <words...>', 'only dialects whose names contain one of these')
  .parse()
await main(command.opts<Options>())
console.log(`${passed} passed, ${failed} failed`)
process.exit(failed === 0 && passed > 0 ? 0 : 1)
